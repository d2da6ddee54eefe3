// Several workers in one process that watch the same network: rank 0 notices changes, at whatever time
// it gets to know what the others saw, and all change their plans at the same call.
#include "adapt/network_watch.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "adapt/job_exchange_testing.h"
#include "adapt/value_agreement_testing.h"
#include "base/clock.h"
#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/topology_makers.h"

namespace syncopate::adapt {
namespace {

constexpr int kWatchedWorkers = 4;
constexpr uint64_t kMiB = 1 << 20;
constexpr int64_t kLongNs = 60'000'000'000;

// A ring in which every hop takes 50 ms for its part, unless it is slow.
class Job {
 public:
  Job() {
    const Topology network =
        StarTopology(kWatchedWorkers, /*bandwidth=*/10e9 / 8, /*latency=*/50e-6);
    const std::vector<int> placement = *PlaceInOrder(network, kWatchedWorkers);
    for (int rank = 0; rank < kWatchedWorkers; ++rank) {
      exchanges.push_back(std::make_unique<BoardExchange>(board, rank));
      agreements.push_back(std::make_unique<InstantAgreement>(agreed, rank));
      watches.push_back(std::make_unique<NetworkWatch>(
          network, placement, [this, rank] { return TrafficOf(rank); }, *exchanges.back(),
          *agreements.back(),
          [this, rank](uint64_t version, const Topology&) {
            published[static_cast<size_t>(rank)].push_back(version);
          },
          clock_));
    }
  }

  // The next call of this worker; the version that it is planned by.
  uint64_t Call(int rank, uint64_t bytes = kMiB, uint64_t digest = 7, int64_t deadline_ns = 0) {
    if (rank == 0) clock_.AdvanceNs(55'000'000);
    const int call = ++calls_[rank];
    agreements[static_cast<size_t>(rank)]->Reach(call);
    const uint64_t version =
        watches[static_cast<size_t>(rank)]->BeforeCall(call, bytes, deadline_ns);
    watches[static_cast<size_t>(rank)]->Planned(digest);
    watches[static_cast<size_t>(rank)]->Waited(slow_hop >= 0 ? 105'000'000 : 55'000'000);
    if (ends) watches[static_cast<size_t>(rank)]->Ended();
    return version;
  }
  void CallAll() {
    for (int rank = 0; rank < kWatchedWorkers; ++rank) Call(rank);
  }

  int slow_hop = -1;  // into this worker
  bool ends = true;   // calls end before the next one begins
  Board board{kWatchedWorkers};
  std::vector<std::unique_ptr<BoardExchange>> exchanges;
  AgreedValues agreed{kWatchedWorkers, NetworkWatch::kCallsFurther};
  std::vector<std::unique_ptr<InstantAgreement>> agreements;
  std::vector<std::unique_ptr<NetworkWatch>> watches;
  std::map<size_t, std::vector<uint64_t>> published;  // by rank: versions that may be planned by

 private:
  std::vector<transport::Traffic> TrafficOf(int rank) const {
    std::vector<transport::Traffic> all(kWatchedWorkers);
    transport::Traffic& from =
        all[static_cast<size_t>((rank + kWatchedWorkers - 1) % kWatchedWorkers)];
    from = {.bytes = 3 * kMiB / 2, .busy_ns = rank == slow_hop ? 100'000'000 : 50'000'000};
    return all;
  }

  std::map<int, int> calls_;
  ManualClock clock_;
};

TEST(NetworkWatchTest, AllWorkersComeToTheSameVersion) {
  Job job;
  const uint64_t first = job.watches[0]->Newest().version;
  for (int i = 0; i < 30; ++i) job.CallAll();
  for (const auto& watch : job.watches) EXPECT_EQ(watch->Newest().version, first);
  job.slow_hop = 2;
  int needed = 0;
  while (job.watches[3]->Newest().version == first && needed < 20) {
    job.CallAll();
    ++needed;
  }
  EXPECT_LE(needed, 9);
  const NetworkVersion version = job.watches[0]->Newest();
  EXPECT_EQ(version.version, first + 1);
  // What Newest() returns can be planned by, though the world group does so some calls later.
  EXPECT_EQ(job.published[3], (std::vector<uint64_t>{first + 1}));
  EXPECT_EQ(job.Call(3), first);
  EXPECT_TRUE(absl::StrContains(version.reason, "1->2")) << version.reason;
  const absl::StatusOr<Topology> topology = ParseTopology(version.topology_json);
  ASSERT_TRUE(topology.ok()) << topology.status();
  EXPECT_EQ(topology->version, first + 1);
  for (const auto& watch : job.watches) {
    EXPECT_EQ(watch->Newest().reason, version.reason);
    EXPECT_EQ(watch->Newest().topology_json, version.topology_json);
  }
}

TEST(NetworkWatchTest, PlansChangeAtTheSameCallHoweverFarAheadAWorkerIs) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Job job;
    Random random(seed);
    constexpr int kCalls = 100;
    int done[kWatchedWorkers] = {};
    std::vector<uint64_t> planned[kWatchedWorkers];
    const auto least = [&] { return *std::min_element(done, done + kWatchedWorkers); };
    while (least() < kCalls) {
      const int rank = static_cast<int>(random.Below(kWatchedWorkers));
      // As far ahead as a worker can be without waiting.
      if (done[rank] == kCalls ||
          done[rank] >= least() + static_cast<int>(NetworkWatch::kPeriodsAheadMax) - 1) {
        continue;
      }
      job.slow_hop = done[rank] >= 30 ? 2 : -1;
      planned[rank].push_back(job.Call(rank));
      ++done[rank];
    }
    for (int rank = 0; rank < kWatchedWorkers; ++rank) EXPECT_EQ(planned[rank], planned[0]);
    EXPECT_EQ(planned[0].back(), planned[0].front() + 1);
    for (size_t rank = 0; rank < kWatchedWorkers; ++rank) {
      EXPECT_EQ(job.published[rank], (std::vector<uint64_t>{planned[0].back()}));
    }
  }
}

// A worker that asks before each call goes as far ahead as it can without waiting, and no further: a
// wait would fail here, since the others run on the same thread.
TEST(NetworkWatchTest, SaysWhenACallWouldWait) {
  Job job;
  constexpr int kAhead = static_cast<int>(NetworkWatch::kPeriodsAheadMax);
  int done = 0;
  for (; !job.watches[1]->WouldWait() && done < 10 * kAhead; ++done) job.Call(1);
  EXPECT_EQ(done, kAhead + 1);  // the last one has not ended its period
  EXPECT_TRUE(job.watches[1]->WouldWait());
  for (int rank = 0; rank < kWatchedWorkers; ++rank) {
    EXPECT_FALSE(rank != 1 && job.watches[static_cast<size_t>(rank)]->WouldWait());
    for (int i = 0; rank != 1 && i < 2; ++i) job.Call(rank);
  }
  // The period that it waited for is known, and one more may begin.
  EXPECT_FALSE(job.watches[1]->WouldWait());
  job.Call(1);
  EXPECT_TRUE(job.watches[1]->WouldWait());
}

// It held the lock that readers need while it waited.
TEST(NetworkWatchTest, ReadersDoNotWaitForAWorkerThatWaitsForRecords) {
  Job job;
  while (!job.watches[1]->WouldWait()) job.Call(1);
  std::atomic<bool> waits = true;
  std::thread ahead([&] {
    job.Call(1, kMiB, 7, MonotonicClock().NowNs() + kLongNs);
    waits = false;
  });
  EXPECT_TRUE(job.board.AwaitWaiter());
  EXPECT_FALSE(job.watches[1]->Newest().topology_json.empty());
  EXPECT_TRUE(waits);
  // The others come to the end of their first period.
  for (int i = 0; i < 2; ++i) {
    for (const int rank : {0, 2, 3}) job.Call(rank);
  }
  ahead.join();
  EXPECT_FALSE(waits);
}

TEST(NetworkWatchTest, ACallThatWaitsForRecordsDoesSoUntilItsDeadline) {
  Job job;
  while (!job.watches[1]->WouldWait()) job.Call(1);
  const int64_t deadline_ns = MonotonicClock().NowNs() + 50'000'000;
  job.Call(1, kMiB, 7, deadline_ns);
  EXPECT_GE(MonotonicClock().NowNs(), deadline_ns);
  EXPECT_LT(MonotonicClock().NowNs(), deadline_ns + kLongNs / 2);
}

// The others used to go on until each of them had waited for the one that had ended.
TEST(NetworkWatchTest, AWatchThatEndsEndsForAll) {
  Job job;
  constexpr size_t kAhead = NetworkWatch::kPeriodsAheadMax;
  while (!job.watches[1]->WouldWait()) job.Call(1);
  job.Call(1);  // its time is up
  EXPECT_FALSE(job.watches[1]->WouldWait()) << "it has ended";
  const size_t rounds = job.board.rounds();
  EXPECT_EQ(rounds, kAhead + 1);
  for (int i = 0; i < 3 * static_cast<int>(kAhead); ++i) {
    for (const int rank : {0, 2, 3}) job.Call(rank, kMiB, 7, MonotonicClock().NowNs() + kLongNs);
  }
  EXPECT_LE(job.board.rounds(), rounds + 1) << "they begin one more, which tells them";
}

// What a worker sends is not trusted: a period of less than no time would be a network of any speed.
TEST(NetworkWatchTest, ARecordThatCannotBeEndsIt) {
  for (const size_t negative : {24, 25}) {  // calls at once, and the time that they took
    Job job;
    std::vector<int64_t> record(NetworkWatch::kPeersMax * 3 + 2, -1);
    record[24] = record[25] = 1;
    record[negative] = -1;
    for (const int rank : {0, 1, 2}) {
      for (int i = 0; i < 2; ++i) job.Call(rank);
    }
    job.board.Put(0, 3, {.what = "traffic", .text = EncodeNumbers(record), .root = 0});
    for (int i = 0; i < 5; ++i) job.Call(0);
    EXPECT_EQ(job.board.rounds(), 2u) << "the call that ends the second period learns it";
  }
}

TEST(NetworkWatchTest, AVersionTravelsWithItsReason) {
  Job job;
  for (int i = 0; i < 30; ++i) job.CallAll();
  job.slow_hop = 2;
  for (int i = 0; i < 20; ++i) job.CallAll();
  EXPECT_EQ(job.agreed.proposals(), 1);
  EXPECT_FALSE(NetworkWatch::DigestOfVersion("").ok());
  EXPECT_FALSE(NetworkWatch::DigestOfVersion(std::string(4, '\xff')).ok());
  EXPECT_FALSE(NetworkWatch::DigestOfVersion(std::string(4, '\0') + "{}").ok());
  const NetworkVersion newest = job.watches[3]->Newest();
  const auto digest = NetworkWatch::DigestOfVersion(std::string(4, '\0') + newest.topology_json);
  ASSERT_TRUE(digest.ok()) << digest.status();
  EXPECT_EQ(*digest, DigestOf(*ParseTopology(newest.topology_json)));
}

TEST(NetworkWatchTest, SmallCallsMakeAPeriodTogether) {
  Job job;
  for (int i = 0; i < 64; ++i) {
    for (int rank = 0; rank < kWatchedWorkers; ++rank) job.Call(rank, kMiB / 16);
  }
  EXPECT_EQ(job.board.rounds(), 3u);  // the fourth ends with the next call
}

TEST(NetworkWatchTest, ACallOfAnotherKindIsNoChange) {
  Job job;
  const uint64_t first = job.watches[0]->Newest().version;
  for (int i = 0; i < 200; ++i) {
    const bool other = i / 20 % 2 == 1;
    job.slow_hop = other ? 1 : -1;  // it loads the hops differently
    // What is counted at the begin of a call belongs to the one before.
    for (int rank = 0; rank < kWatchedWorkers; ++rank) job.Call(rank, kMiB, (i + 1) / 20 % 2 + 1);
  }
  EXPECT_EQ(job.watches[0]->Newest().version, first);
}

TEST(NetworkWatchTest, CallsThatRunAtOnceAreNoChange) {
  Job job;
  const uint64_t first = job.watches[0]->Newest().version;
  for (int i = 0; i < 200; ++i) {
    // Every 20 calls begin or end to come in twos, which slow each other down.
    const bool twos = i / 20 % 2 == 1;
    job.slow_hop = twos ? 1 : -1;
    job.ends = !twos || i % 2 == 1;
    for (int rank = 0; rank < kWatchedWorkers; ++rank) {
      job.Call(rank);
      if (twos && job.ends) job.watches[static_cast<size_t>(rank)]->Ended();
    }
  }
  EXPECT_EQ(job.watches[0]->Newest().version, first);
}

TEST(NetworkWatchTest, CallsOfOtherGroupsBesideAreNoChange) {
  Job job;
  const uint64_t first = job.watches[0]->Newest().version;
  for (int i = 0; i < 200; ++i) {
    // Every 20 calls another group begins or ends to work beside, which takes bandwidth away.
    const bool beside = i / 20 % 2 == 1;
    job.slow_hop = beside ? 1 : -1;
    for (int rank = 0; rank < kWatchedWorkers; ++rank) {
      if (beside) job.watches[static_cast<size_t>(rank)]->BesideCall();
      job.Call(rank);
      if (beside) job.watches[static_cast<size_t>(rank)]->Ended();
    }
  }
  EXPECT_EQ(job.watches[0]->Newest().version, first);
}

TEST(NetworkWatchTest, AFailedExchangeEndsItQuietly) {
  Job job;
  for (int i = 0; i < 30; ++i) job.CallAll();
  job.board.Break(31);
  const NetworkVersion before = job.watches[0]->Newest();
  job.slow_hop = 2;
  for (int i = 0; i < 40; ++i) job.CallAll();
  EXPECT_EQ(job.watches[0]->Newest().version, before.version);
  EXPECT_LE(job.board.rounds(), 34u) << "nobody asks any more";
}

}  // namespace
}  // namespace syncopate::adapt
