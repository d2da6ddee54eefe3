#include "sim/token_buckets.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"
#include "model/topology_makers.h"
#include "sim/fluid_bandwidth.h"
#include "sim/group_flows.h"

namespace syncopate::sim {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

TEST(TokenBucketTest, IsDrainedByWhatIsUsedBeyondItsRateAndFilledByTheRest) {
  TokenBucket bucket(10, 100);
  EXPECT_EQ(bucket.tokens(), 100);
  EXPECT_EQ(bucket.EmptyAt(), kNever);
  bucket.SetUsage(30);
  EXPECT_DOUBLE_EQ(bucket.EmptyAt(), 5);
  bucket.Advance(2);
  EXPECT_DOUBLE_EQ(bucket.tokens(), 60);
  EXPECT_DOUBLE_EQ(bucket.EmptyAt(), 5);
  bucket.SetUsage(0);
  bucket.Advance(3);
  EXPECT_DOUBLE_EQ(bucket.tokens(), 70);
  bucket.Advance(100);
  EXPECT_EQ(bucket.tokens(), 100) << "no more than it holds";
  bucket.SetUsage(10);
  EXPECT_EQ(bucket.EmptyAt(), kNever) << "its rate can go on for ever";
  bucket.SetUsage(110);
  bucket.Advance(101);
  EXPECT_EQ(bucket.tokens(), 0);
  EXPECT_EQ(bucket.EmptyAt(), 101);
}

// Two devices around a switch: a rate of 10, a line of 110 and a burst of 100 on the way out of the first.
class OneBucketTest : public ::testing::Test {
 protected:
  OneBucketTest()
      : topology_(std::make_shared<const Topology>(StarTopology(2, 10, 1e-3))),
        placement_(*PlaceInOrder(*topology_, 2)) {
    size_t link = 0;
    while (topology_->links[link].from != placement_[0]) ++link;
    capacity_ = topology_->links[link].capacities.front();
    resource_ = static_cast<int>(topology_->links.size()) + capacity_;
  }

  CapacityBucket Bucket(double burst, double line_rate) const {
    return {.capacity = capacity_, .burst = burst, .line_rate = line_rate};
  }
  // How long it takes from `begin` on to send so many bytes, in turn, from worker 0 to worker 1.
  std::vector<double> SendOneByOne(const std::vector<CapacityBucket>& buckets,
                                   const std::vector<std::pair<double, uint64_t>>& sends) {
    FluidBandwidth bandwidth(std::make_unique<GroupFlows>(topology_, placement_, 1 << 20), buckets);
    std::vector<double> seconds;
    double now = 0;
    for (const auto& [begin, bytes] : sends) {
      EXPECT_GE(begin, now) << "the one before is still under way";
      EXPECT_TRUE(
          bandwidth
              .Add(0, {.members = std::make_shared<const MemberList>(std::vector<int>{0, 1}),
                       .average = false,
                       .from = {0},
                       .to = 1,
                       .bytes = bytes})
              .ok());
      EXPECT_EQ(bandwidth.NextEnd(), kNever);
      bandwidth.Begin(begin, 0);
      for (bool ended = false; !ended;) {
        now = bandwidth.NextEnd();
        ended = !bandwidth.TakeEnded(now).empty();
      }
      seconds.push_back(now - begin);
    }
    return seconds;
  }

  const std::shared_ptr<const Topology> topology_;
  const std::vector<int> placement_;
  int capacity_ = 0;  // of the way out of the first device
  int resource_ = 0;
};

TEST_F(OneBucketTest, ALinkIsAsQuickAsItsLineUntilTheBucketIsEmpty) {
  cost::FlowNetwork network(std::vector<double>(static_cast<size_t>(resource_) + 1, 10));
  TokenBuckets buckets({Bucket(100, 110)}, *topology_);
  EXPECT_EQ(buckets.Settle(0, network), kNever);
  network.Start(0, 200, {{{resource_, 1}}}, 7);
  EXPECT_DOUBLE_EQ(buckets.Settle(0, network), 1);  // 110 of 200, 10 of which came in meanwhile
  EXPECT_EQ(buckets.Settle(1, network), kNever);
  EXPECT_DOUBLE_EQ(network.NextCompletion(), 10);  // the other 90
  network.Complete(10);
  EXPECT_EQ(buckets.Settle(10, network), kNever);
  network.Start(15, 60, {{{resource_, 1}}}, 8);  // 50 tokens by now
  EXPECT_DOUBLE_EQ(buckets.Settle(15, network), 15.5);
  EXPECT_EQ(buckets.Settle(15.5, network), kNever);
  EXPECT_DOUBLE_EQ(network.NextCompletion(), 16);
}

// All other ways to the receiver have the rate of 10 as well, so both ends need a bucket.
TEST_F(OneBucketTest, ATransferAfterAPauseMakesUpForIt) {
  std::vector<CapacityBucket> buckets;
  for (size_t i = 0; i < topology_->capacities.size(); ++i) {
    buckets.push_back({.capacity = static_cast<int>(i), .burst = 100, .line_rate = 110});
  }
  const auto seconds = SendOneByOne(buckets, {{0, 55}, {1, 300}, {50, 10}, {54, 60}, {1000, 300}});
  EXPECT_NEAR(seconds[0], 0.5, 1e-6);
  EXPECT_NEAR(seconds[1], 24.5, 1e-6);  // 55 tokens: at 110 for 0.55 s, then 239.5 at 10
  EXPECT_NEAR(seconds[2], 10 / 110.0, 1e-6);
  EXPECT_NEAR(seconds[3], 60 / 110.0, 1e-6);
  EXPECT_NEAR(seconds[4], 20, 1e-6);  // full again: (300 - 100) / 10
}

TEST_F(OneBucketTest, ALineOfTheLinksOwnRateChangesNothing) {
  const std::vector<std::pair<double, uint64_t>> sends = {{0, 55}, {10, 300}, {50, 10}, {51, 60}};
  const std::vector<double> without = SendOneByOne({}, sends);
  EXPECT_EQ(SendOneByOne({Bucket(100, 10)}, sends), without);
  // Nor does a bucket for nothing, or where something else is as slow.
  EXPECT_EQ(SendOneByOne({Bucket(1e-9, 110)}, sends).size(), without.size());
  const std::vector<double> small = SendOneByOne({Bucket(1e-6, 110)}, sends);
  for (size_t i = 0; i < without.size(); ++i) EXPECT_NEAR(small[i], without[i], 1e-6);
}

TEST_F(OneBucketTest, AFlowHasTheLinesTimeForWhatTheBucketHolds) {
  const TokenBuckets buckets({Bucket(100, 110)}, *topology_);
  EXPECT_DOUBLE_EQ(buckets.QuickestSeconds(0.11, 50, {{resource_, 1}}), 0.01);
  EXPECT_DOUBLE_EQ(buckets.QuickestSeconds(0.11, 400, {{resource_, 1}}), 0.11 * 300 / 400);
  EXPECT_DOUBLE_EQ(buckets.QuickestSeconds(0.11, 400, {{resource_, 0.5}}), 0.11 * 200 / 400);
  EXPECT_EQ(buckets.QuickestSeconds(0.11, 50, {{resource_ + 1, 1}}), 0.11)
      << "no bucket on its way";
}

// Random flows on random networks: no link carries more in any time than a bucket that was full when it
// began lets through, and all flows end.
TEST(TokenBucketsTest, NoLinkCarriesMoreThanItsBucketLetsThrough) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    const Topology topology = StarTopology(4, 10, 1e-3);
    const size_t links = topology.links.size(), count = topology.capacities.size();
    std::vector<CapacityBucket> shaped;
    std::map<size_t, CapacityBucket> by_capacity;
    for (size_t i = 0; i < count; ++i) {
      if (random.Below(4) == 0) continue;
      shaped.push_back({.capacity = static_cast<int>(i),
                        .burst = 1 + 50 * random.Unit(),
                        .line_rate = 10 + 90 * random.Unit()});
      by_capacity[i] = shaped.back();
    }
    const std::vector<double> capacities(links + count, 10);
    cost::FlowNetwork network(capacities);
    TokenBuckets buckets(shaped, topology);
    std::vector<double> carried(count, 0);
    std::vector<double> low(count, 0);  // the least of carried - rate * time so far
    double now = 0, next_start = 0;
    int started = 0, ended = 0;
    for (int events = 0; ended < 60; ++events) {
      ASSERT_LT(events, 5000) << "seed " << seed << ": buckets keep changing";
      const double change = buckets.Settle(now, network);
      double next = std::min(network.NextCompletion(), change);
      if (started < 60) next = std::min(next, next_start);
      ASSERT_LT(next, kNever) << "seed " << seed;
      for (size_t i = 0; i < count; ++i) {
        const double usage = network.Usage(static_cast<int>(links + i));
        const auto found = by_capacity.find(i);
        const double rate = topology.capacities[i].bandwidth;
        ASSERT_LE(usage,
                  (found == by_capacity.end() ? rate : found->second.line_rate) * (1 + 1e-9));
        carried[i] += usage * (next - now);
        const double level = carried[i] - rate * next;
        const double burst = found == by_capacity.end() ? 0 : found->second.burst;
        ASSERT_LE(level, low[i] + burst * (1 + 1e-3) + 1e-6)
            << "seed " << seed << ", capacity " << i;
        low[i] = std::min(low[i], level);
      }
      now = next;
      ended += static_cast<int>(network.Complete(now).size());
      if (started == 60 || now < next_start) continue;
      std::vector<cost::FlowNetwork::Draw> draws;
      for (size_t i = 0; i < count; ++i) {
        if (random.Below(3) == 0)
          draws.push_back({static_cast<int>(links + i), 0.1 + random.Unit()});
      }
      if (draws.empty()) draws.push_back({static_cast<int>(links), 1});
      network.Start(now, 1 + 60 * random.Unit(), draws, started++, 20 + 100 * random.Unit());
      next_start = now + 4 * random.Unit();
    }
  }
}

}  // namespace
}  // namespace syncopate::sim
