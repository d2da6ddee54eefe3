#include "worker/service_ranks.h"

#include <unistd.h>

#include <cstdlib>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "syncopate/syncopate.h"
#include "worker/algorithm_terms.h"

namespace syncopate::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

absl::StatusOr<std::vector<int>> Read(const std::string& text) {
  return ServiceRanksFromEnvironment([&](const std::string& name) {
    return name == "SYNCOPATE_SERVICE_RANKS" ? std::optional<std::string>(text) : std::nullopt;
  });
}

TEST(ServiceRanksTest, TheFirstChoiceComesFirst) {
  EXPECT_THAT(*Read("4,0-2"), ElementsAre(4, 0, 1, 2));
  EXPECT_THAT(*Read("7"), ElementsAre(7));
  EXPECT_THAT(*ServiceRanksFromEnvironment([](const std::string&) { return std::nullopt; }),
              IsEmpty());
  EXPECT_THAT(*ServiceOrder({}, {}, 3), ElementsAre(0, 1, 2));
  EXPECT_THAT(*ServiceOrder({2, 0}, {}, 3), ElementsAre(2, 0));
}

TEST(ServiceRanksTest, ServersHostOnlyInAJobOfServers) {
  EXPECT_THAT(*ServiceOrder({}, {0}, 4), ElementsAre(1, 2, 3));
  EXPECT_THAT(*ServiceOrder({}, {2, 0}, 3), ElementsAre(1));
  EXPECT_THAT(*ServiceOrder({3, 1}, {0}, 4), ElementsAre(3, 1));
  EXPECT_THAT(*ServiceOrder({}, {0}, 1), ElementsAre(0));
  EXPECT_THAT(*ServiceOrder({}, {1, 0}, 2), ElementsAre(0, 1));
}

TEST(ServiceRanksTest, WhatIsNoOrderOfRanksIsRefused) {
  for (const char* text : {"", "a", "1,", "-1", "3-1", "5000", "1;2"}) {
    const absl::Status status = Read(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(status.message(), HasSubstr("SYNCOPATE_SERVICE_RANKS: ")) << text;
    EXPECT_THAT(status.message(), HasSubstr("first choice first, such as 4,0-3")) << text;
  }
  EXPECT_THAT(Read("1,0-2").status().message(), HasSubstr("rank 1 stands there twice"));
  EXPECT_THAT(ServiceOrder({3}, {}, 3).status().message(),
              HasSubstr("rank 3 of a job of 3 workers"));
  const absl::Status server = ServiceOrder({2, 0}, {0}, 3).status();
  EXPECT_EQ(server.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(server.message(),
              HasSubstr("SYNCOPATE_SERVICE_RANKS: rank 0 is a server, which hosts no services"));
  for (const int none : {-1, 3}) {
    const absl::Status status = ServiceOrder({}, {none}, 3).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr(std::to_string(none) + " is named as a server"));
  }
}

TEST(ServiceRanksTest, AnOrderIsAmongTheTermsThatWorkersCompare) {
  EXPECT_EQ(ServiceTerms({}, {}), "");
  EXPECT_EQ(ServiceTerms({}, {0, 3}), "the server ranks 0,3");
  EXPECT_EQ(ServiceTerms({1}, {0}), "SYNCOPATE_SERVICE_RANKS=1 and the server ranks 0");
  // Planners of other tests may stand before it.
  EXPECT_THAT(AlgorithmTerms({}, ServiceTerms({4, 0, 1}, {})),
              ::testing::EndsWith("SYNCOPATE_SERVICE_RANKS=4,0,1"));
}

TEST(ServiceRanksTest, AWorkerWithABadOrderDoesNotStart) {
  for (const char* text : {"nobody", "1", "0"}) {
    setenv("SYNCOPATE_SERVICE_RANKS", text, 1);
    Options options;
    options.server_ranks = {0};
    options.job = Job{"service-ranks-" + std::to_string(getpid()), 0, 1, 0, 1};
    options.arena_bytes = uint64_t{16} << 20;
    const absl::Status status = Worker::Start(options).status();
    unsetenv("SYNCOPATE_SERVICE_RANKS");
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(status.message(), HasSubstr("SYNCOPATE_SERVICE_RANKS")) << status;
  }
}

}  // namespace
}  // namespace syncopate::worker
