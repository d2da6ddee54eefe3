// How long a worker waits for others that have met it and then do not connect, and what the
// environment may say.
#include "worker/start_transport.h"

#include <unistd.h>

#include <map>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/proof.h"
#include "control/meeting.h"
#include "control/rendezvous_server.h"
#include "gtest/gtest.h"
#include "transport/net/endpoint.h"

namespace syncopate::worker {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
const std::string kKey(kKeyBytes, 'k');

// SYNCOPATE_TIMEOUT bounded the meeting, but not what comes after it: that took a minute.
TEST(StartTransportTest, TheTimeoutBoundsConnectingWithOtherHosts) {
  for (const int rank :
       {0, 1}) {  // the one that waits for the other's call, and the one that calls
    const std::string job = absl::StrCat("start-transport-test-", getpid(), "-", rank);
    const auto server = control::RendezvousServer::Start(
        {.job = job, .size = 2, .key = kKey, .hosts = {}, .on_step = {}}, MonotonicClock());
    ASSERT_TRUE(server.ok()) << server.status();
    const auto environment = MapEnvironment({{"SYNCOPATE_TIMEOUT", "2s"},
                                             {"SYNCOPATE_RENDEZVOUS", (*server)->address()},
                                             {"SYNCOPATE_KEY", FormatKey(kKey)},
                                             {"SYNCOPATE_SOCKET_IFNAME", "=lo"}});
    bool met = false;
    std::thread other([&] {
      // Nobody listens at port 1.
      const transport::net::Endpoint nowhere = {
          .wire = "tcp", .machine = "another", .host = "other", .address = "127.0.0.1:1"};
      met = control::Meet({.job = job,
                           .rank = 1 - rank,
                           .size = 2,
                           .key = kKey,
                           .rendezvous = (*server)->address(),
                           .host = "other",
                           .payload = Encode(nowhere),
                           .deadline_ns = MonotonicClock().NowNs() + 30 * kSecond},
                          MonotonicClock(), environment)
                .ok();
    });
    Options options;
    options.job = Job{.id = job, .rank = rank, .size = 2, .local_rank = 0, .local_size = 1};
    const int64_t begin_ns = MonotonicClock().NowNs();
    const absl::Status status = StartTransport(options, environment).status();
    const int64_t waited_ns = MonotonicClock().NowNs() - begin_ns;
    other.join();
    EXPECT_TRUE(met);
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
    EXPECT_GE(waited_ns, 2 * kSecond);
    EXPECT_LT(waited_ns, 30 * kSecond);
  }
}

TEST(StartTransportTest, WhatToDoWithStuckWorkersIsWaitOrKill) {
  Options options;
  options.job = Job{.id = absl::StrCat("stuck-", getpid()), .local_rank = 0, .local_size = 1};
  options.arena_bytes = 1 << 20;
  const absl::Status status =
      StartTransport(options, MapEnvironment({{"SYNCOPATE_STUCK", "shoot"}})).status();
  EXPECT_EQ(status.message(), "SYNCOPATE_STUCK: \"shoot\" is neither wait nor kill");
  for (const char* text : {"", "wait", "kill"}) {
    EXPECT_TRUE(StartTransport(options, MapEnvironment({{"SYNCOPATE_STUCK", text}})).ok()) << text;
  }
}

}  // namespace
}  // namespace syncopate::worker
