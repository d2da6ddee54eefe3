// Several workers in one process that watch the same network: they come to the same versions, at
// whatever time each gets to know what the others saw, and change their plans at the same call.
#include "adapt/network_watch.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "adapt/job_exchange_testing.h"
#include "base/clock.h"
#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/topology_makers.h"

namespace syncopate::adapt {
namespace {

constexpr int kWorkers = 4;
constexpr uint64_t kMiB = 1 << 20;

// A ring in which every hop takes 50 ms for its part, unless it is slow.
class Job {
 public:
  Job() {
    const Topology network = StarTopology(kWorkers, /*bandwidth=*/10e9 / 8, /*latency=*/50e-6);
    const std::vector<int> placement = *PlaceInOrder(network, kWorkers);
    for (int rank = 0; rank < kWorkers; ++rank) {
      exchanges.push_back(std::make_unique<BoardExchange>(board, rank));
      watches.push_back(std::make_unique<NetworkWatch>(
          network, placement, [this, rank] { return TrafficOf(rank); }, *exchanges.back(),
          [this, rank](uint64_t version, const Topology&) {
            switches[static_cast<size_t>(rank)].push_back({calls_[rank], version});
          },
          clock_));
    }
  }

  // The next call of this worker; the version that it is planned by.
  uint64_t Call(int rank, uint64_t bytes = kMiB, uint64_t digest = 7) {
    if (rank == 0) clock_.AdvanceNs(55'000'000);
    const uint64_t version = watches[static_cast<size_t>(rank)]->BeforeCall(bytes);
    ++calls_[rank];
    watches[static_cast<size_t>(rank)]->Planned(digest);
    watches[static_cast<size_t>(rank)]->Waited(slow_hop >= 0 ? 105'000'000 : 55'000'000);
    if (ends) watches[static_cast<size_t>(rank)]->Ended();
    return version;
  }
  void CallAll() {
    for (int rank = 0; rank < kWorkers; ++rank) Call(rank);
  }

  int slow_hop = -1;  // into this worker
  bool ends = true;   // calls end before the next one begins
  Board board{kWorkers};
  std::vector<std::unique_ptr<BoardExchange>> exchanges;
  std::vector<std::unique_ptr<NetworkWatch>> watches;
  std::map<size_t, std::vector<std::pair<int, uint64_t>>> switches;  // by rank: call, version

 private:
  std::vector<transport::Traffic> TrafficOf(int rank) const {
    std::vector<transport::Traffic> all(kWorkers);
    transport::Traffic& from = all[static_cast<size_t>((rank + kWorkers - 1) % kWorkers)];
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
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Job job;
    Random random(seed);
    constexpr int kCalls = 80;
    int done[kWorkers] = {};
    std::vector<uint64_t> planned[kWorkers];
    const auto least = [&] { return *std::min_element(done, done + kWorkers); };
    while (least() < kCalls) {
      const int rank = static_cast<int>(random.Below(kWorkers));
      // As far ahead as a worker can be without waiting.
      if (done[rank] == kCalls ||
          done[rank] >= least() + static_cast<int>(NetworkWatch::kSwitchPeriods) - 1) {
        continue;
      }
      job.slow_hop = done[rank] >= 30 ? 2 : -1;
      planned[rank].push_back(job.Call(rank));
      ++done[rank];
    }
    for (int rank = 0; rank < kWorkers; ++rank) EXPECT_EQ(planned[rank], planned[0]);
    EXPECT_EQ(planned[0].back(), planned[0].front() + 1);
    for (size_t rank = 0; rank < kWorkers; ++rank) {
      ASSERT_EQ(job.switches[rank].size(), 1u);
      EXPECT_EQ(job.switches[rank], job.switches[0]);
    }
  }
}

TEST(NetworkWatchTest, SmallCallsMakeAPeriodTogether) {
  Job job;
  for (int i = 0; i < 64; ++i) {
    for (int rank = 0; rank < kWorkers; ++rank) job.Call(rank, kMiB / 16);
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
    for (int rank = 0; rank < kWorkers; ++rank) job.Call(rank, kMiB, (i + 1) / 20 % 2 + 1);
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
    for (int rank = 0; rank < kWorkers; ++rank) {
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
    for (int rank = 0; rank < kWorkers; ++rank) {
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
