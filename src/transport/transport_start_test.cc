// What only some transports promise: how workers find each other or do not, how they sleep in shared
// memory, what networks say of dropped frames.
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "transport/net/net_transport.h"
#include "transport/shm/shm_transport.h"
#include "transport/transport_testing.h"

namespace syncopate::transport {
namespace {

// ---- what only networks have

// What is dropped would otherwise be seen by nobody.
TEST(NetTransportTest, FramesOfClosedGroupsAreCountedAndShown) {
  ASSERT_TRUE(SetUpLog("INFO", "test").ok());
  ::testing::internal::CaptureStderr();
  {
    NetTestWorld world(2, 2, "tcp", 1);
    const auto mine = *world.transport(0).OpenGroup(5, {0, 1});
    (*world.transport(1).OpenGroup(5, {0, 1})).reset();
    std::byte data[8] = {};
    const auto session =
        *mine->Open({.sequence = 0, .awaits_start = false, .data_bytes = 8, .steps = 1});
    session->Offer(0, 1, data, {Space::kData, 0, 8});
    for (int i = 0; i < 100000 && !session->Consumed(1, 0, 0); ++i) world.Pass();
  }
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_TRUE(SetUpLog("", "test").ok());
  // The one that says that the operation has begun, and the data.
  EXPECT_THAT(log, ::testing::HasSubstr("dropped frames: 2 of closed groups"));
}

// ---- what only shared memory has

TEST(ShmTransportTest, MissingWorkersAreNamed) {
  const auto started = StartShmTransport({.job = "missing-" + std::to_string(getpid()),
                                          .rank = 1,
                                          .size = 3,
                                          .arena_bytes = 1 << 20,
                                          .start_timeout_ns = 50'000'000},
                                         MonotonicClock());
  ASSERT_EQ(started.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_NE(started.status().message().find("workers 0,2"), absl::string_view::npos)
      << started.status();
}

TEST(ShmTransportTest, OneOfTwoWorkersOfOneRankIsRefused) {
  const ShmOptions options = {.job = "twice-" + std::to_string(getpid()),
                              .rank = 0,
                              .size = 2,
                              .arena_bytes = 1 << 20,
                              .start_timeout_ns = 500'000'000};
  absl::Status statuses[2];
  std::vector<std::thread> threads;
  for (absl::Status& status : statuses) {
    threads.emplace_back([&] { status = StartShmTransport(options, MonotonicClock()).status(); });
  }
  for (std::thread& thread : threads) thread.join();
  // Whoever came second was refused; the other waited for rank 1 in vain.
  std::sort(std::begin(statuses), std::end(statuses),
            [](const auto& a, const auto& b) { return a.code() < b.code(); });
  EXPECT_EQ(statuses[0].code(), absl::StatusCode::kDeadlineExceeded) << statuses[0];
  EXPECT_EQ(statuses[1].code(), absl::StatusCode::kAlreadyExists) << statuses[1];
}

TEST(ShmTransportTest, ParkReturnsWhenAPeerMovesAndAtTheDeadline) {
  ShmTestWorld world(2);
  Transport& sleeper = world.transport(1);
  const int64_t start_ns = MonotonicClock().NowNs();
  uint32_t ticket = sleeper.PrepareToPark();
  sleeper.Park(ticket, start_ns + 20'000'000);
  EXPECT_GE(MonotonicClock().NowNs(), start_ns + 20'000'000) << "nobody moved";
  // A peer that moves between the preparation and the sleep is not missed.
  auto mine = *sleeper.OpenGroup(5, {0, 1});
  ticket = sleeper.PrepareToPark();
  auto theirs = *world.transport(0).OpenGroup(5, {0, 1});
  const int64_t far_ns = MonotonicClock().NowNs() + 60'000'000'000;
  sleeper.Park(ticket, far_ns);
  EXPECT_LT(MonotonicClock().NowNs(), far_ns);
}

// Workers that were not started alike learn it when they meet, all of them the same.
void ExpectRefusal(const std::vector<absl::Status>& statuses) {
  for (const absl::Status& status : statuses) {
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_EQ(status.message(), statuses[0].message());
    EXPECT_NE(status.message().find("worker 0 has nothing special, worker 2 has rules"),
              std::string::npos)
        << status;
  }
}

TEST(TermsTest, DifferentOnesAreRefusedInSharedMemory) {
  std::vector<absl::Status> statuses(3);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank] {
      statuses[static_cast<size_t>(rank)] =
          StartShmTransport({.job = "terms-" + std::to_string(getpid()),
                             .rank = rank,
                             .size = 3,
                             .arena_bytes = 1 << 20,
                             .terms = rank == 2 ? "rules" : ""},
                            MonotonicClock())
              .status();
    });
  }
  for (std::thread& thread : threads) thread.join();
  ExpectRefusal(statuses);
}

TEST(TermsTest, DifferentOnesAreRefusedOnANetwork) {
  std::vector<std::unique_ptr<NetStart>> starts;
  std::vector<std::string> payloads;
  for (int rank = 0; rank < 3; ++rank) {
    starts.push_back(*StartNetTransport({.job = "net-terms-" + std::to_string(getpid()),
                                         .rank = rank,
                                         .size = 3,
                                         .ip = "127.0.0.1",
                                         .arena_bytes = 1 << 20,
                                         .terms = rank == 2 ? "rules" : ""},
                                        MonotonicClock()));
    payloads.push_back(starts.back()->payload());
  }
  std::vector<absl::Status> statuses;
  for (const std::unique_ptr<NetStart>& start : starts) {
    statuses.push_back(start->Connect(payloads, "the key of this job").status());
  }
  ExpectRefusal(statuses);
}

}  // namespace
}  // namespace syncopate::transport
