#include "cost/flow_network.h"

#include <limits>
#include <map>
#include <string>
#include <vector>

#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncopate::cost {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(FlowNetworkTest, OneFlowTakesAmountOverCapacity) {
  FlowNetwork network({4, 10});
  EXPECT_EQ(network.NextCompletion(), std::numeric_limits<double>::infinity());
  network.Start(1, 8, {{{0, 1}, {1, 1}}}, 7);
  EXPECT_DOUBLE_EQ(network.NextCompletion(), 3);
  EXPECT_THAT(network.Complete(3), ElementsAre(7));
  EXPECT_EQ(network.NextCompletion(), std::numeric_limits<double>::infinity());
}

TEST(FlowNetworkTest, WeightsCountAgainstTheCapacity) {
  FlowNetwork network({6});
  network.Start(0, 4, {{{0, 3}}}, 0);
  EXPECT_DOUBLE_EQ(network.NextCompletion(), 2);
}

// Three links in a row, one flow over all of them and one over each: the classical example. With
// capacities 1, 2, 3 the long flow gets 1/2, the short ones 1/2, 3/2 and 5/2.
TEST(FlowNetworkTest, RatesAreMaxMinFair) {
  FlowNetwork network({1, 2, 3});
  network.Start(0, 1, {{{0, 1}, {1, 1}, {2, 1}}}, 0);
  network.Start(0, 1, {{{0, 1}}}, 1);
  network.Start(0, 3, {{{1, 1}}}, 2);
  network.Start(0, 5, {{{2, 1}}}, 3);
  EXPECT_DOUBLE_EQ(network.NextCompletion(), 2);
  EXPECT_THAT(network.Complete(2), ElementsAre(0, 1, 2, 3));
}

TEST(FlowNetworkTest, WhatOneFlowLeavesGoesToTheOthers) {
  FlowNetwork network({2});
  network.Start(0, 1, {{{0, 1}}}, 0);
  network.Start(0, 3, {{{0, 1}}}, 1);
  EXPECT_DOUBLE_EQ(network.NextCompletion(), 1);
  EXPECT_THAT(network.Complete(1), ElementsAre(0));
  EXPECT_DOUBLE_EQ(network.NextCompletion(), 2);  // 2 units left at rate 2
  network.Start(1.5, 1, {{{0, 1}}}, 2);           // 1 unit left, now at rate 1
  EXPECT_DOUBLE_EQ(network.NextCompletion(), 2.5);
  EXPECT_THAT(network.Complete(2.5), ElementsAre(1, 2));
}

TEST(FlowNetworkTest, ALimitedFlowLeavesTheRestToOthers) {
  FlowNetwork network({4});
  network.Start(0, 2, {{{0, 1}}}, 0, 1);  // at 1 of its fair 2
  network.Start(0, 6, {{{0, 1}}}, 1);     // at 3
  EXPECT_DOUBLE_EQ(network.NextCompletion(), 2);
  EXPECT_THAT(network.Complete(2), ElementsAre(0, 1));
  // A limit alone is enough, and the next flow with a limit has its own.
  network.Start(2, 2, {}, 2, 0.5);
  EXPECT_DOUBLE_EQ(network.NextCompletion(), 6);
}

TEST(FlowNetworkTest, WhatACancelledFlowUsedGoesToTheOthers) {
  FlowNetwork network({2});
  const int first = network.Start(0, 10, {{{0, 1}}}, 0, 5);
  network.Start(0, 3, {{{0, 1}}}, 1);
  EXPECT_DOUBLE_EQ(network.NextCompletion(), 3);
  network.Cancel(1, first);  // two units are left, at rate 2
  EXPECT_DOUBLE_EQ(network.NextCompletion(), 2);
  EXPECT_THAT(network.Complete(2), ElementsAre(1));
  EXPECT_EQ(network.NextCompletion(), std::numeric_limits<double>::infinity());
}

TEST(FlowNetworkTest, NothingCompletesBeforeItsTime) {
  FlowNetwork network({1});
  network.Start(0, 1, {{{0, 1}}}, 0);
  EXPECT_THAT(network.Complete(0.5), IsEmpty());
  EXPECT_DOUBLE_EQ(network.NextCompletion(), 1);
}

// Whatever the weights, what is drawn from a resource is what the flows amount to, and the time is
// at least what the fullest resource needs.
TEST(FlowNetworkTest, RandomFlowsEndAndKeepWithinCapacity) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    std::vector<double> capacities(random.Between(1, 12));
    for (double& capacity : capacities) capacity = 0.1 + random.Unit();
    FlowNetwork network(capacities);
    std::vector<double> drawn(capacities.size(), 0);
    const int flows = static_cast<int>(random.Between(1, 60));
    for (int i = 0; i < flows; ++i) {
      std::map<int, double> draws;
      for (int64_t d = random.Between(1, 4); d > 0; --d) {
        // Weights of very different size, as small messages' overheads make them.
        draws[static_cast<int>(random.Below(capacities.size()))] =
            random.Below(4) == 0 ? 1e-12 : 1e3 * random.Unit() + 1e-3;
      }
      std::vector<FlowNetwork::Draw> list;
      const double amount = random.Unit() + 1e-3;
      for (const auto& [resource, weight] : draws) {
        list.push_back({resource, weight});
        drawn[resource] += weight * amount;
      }
      network.Start(0, amount, list, i);
    }
    double last = 0;
    int ended = 0;
    while (ended < flows) {
      const double next = network.NextCompletion();
      ASSERT_LT(next, std::numeric_limits<double>::infinity());
      ASSERT_GE(next, last);
      last = next;
      ended += static_cast<int>(network.Complete(next).size());
    }
    for (size_t r = 0; r < capacities.size(); ++r) {
      EXPECT_LE(drawn[r] / capacities[r], last * (1 + 1e-6)) << "resource " << r;
    }
  }
}

}  // namespace
}  // namespace syncopate::cost
