#include "cost/flow_network.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
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

TEST(FlowNetworkTest, ACapacityThatChangesCountsFromThenOn) {
  FlowNetwork network({2, 10});
  network.Start(0, 4, {{{0, 1}, {1, 2}}}, 0);
  EXPECT_DOUBLE_EQ(network.NextCompletion(), 2);
  EXPECT_DOUBLE_EQ(network.Usage(0), 2);
  EXPECT_DOUBLE_EQ(network.Usage(1), 4);
  network.SetCapacity(1, 0, 8);  // 2 units left, of which the other resource lets 5 through
  EXPECT_DOUBLE_EQ(network.Usage(0), 5);
  EXPECT_DOUBLE_EQ(network.NextCompletion(), 1.4);
  network.Start(1.2, 2.25, {{{0, 1}}}, 1);  // 1 unit left of the first
  EXPECT_DOUBLE_EQ(network.Usage(0), 8);
  network.SetCapacity(1.2, 0, 1);
  EXPECT_DOUBLE_EQ(network.Usage(0), 1);
  EXPECT_DOUBLE_EQ(network.NextCompletion(), 3.2);
  EXPECT_THAT(network.Complete(3.2), ElementsAre(0));
  EXPECT_DOUBLE_EQ(network.NextCompletion(), 4.45);
  EXPECT_EQ(network.Usage(1), 0);
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
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
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

// The definition, played without any cleverness: before every event all rates grow together, by hand.
class PlainNetwork {
 public:
  struct Flow {
    std::vector<FlowNetwork::Draw> draws;
    double remaining = 0, rate_max = 0, rate = 0;
  };

  explicit PlainNetwork(std::vector<double> capacities) : capacities_(std::move(capacities)) {}

  std::map<int, Flow> flows;  // by tag

  void Settle() {
    std::vector<double> left = capacities_;
    std::set<int> growing;
    for (auto& [tag, flow] : flows) {
      flow.rate = 0;
      growing.insert(tag);
    }
    while (!growing.empty()) {
      double step = std::numeric_limits<double>::infinity();
      std::vector<double> weight(left.size(), 0);
      for (const int tag : growing) {
        step = std::min(step, flows[tag].rate_max - flows[tag].rate);
        for (const FlowNetwork::Draw& draw : flows[tag].draws) weight[draw.resource] += draw.weight;
      }
      for (size_t r = 0; r < left.size(); ++r) {
        if (weight[r] > 0) step = std::min(step, left[r] / weight[r]);
      }
      for (size_t r = 0; r < left.size(); ++r) left[r] -= step * weight[r];
      std::set<int> next;
      for (const int tag : growing) {
        Flow& flow = flows[tag];
        flow.rate += step;
        const bool stops =
            flow.rate >= flow.rate_max * (1 - 1e-12) ||
            std::any_of(flow.draws.begin(), flow.draws.end(), [&](const FlowNetwork::Draw& draw) {
              return left[draw.resource] <= 1e-9 * capacities_[draw.resource];
            });
        if (!stops) next.insert(tag);
      }
      ASSERT_LT(next.size(), growing.size());
      growing = next;
    }
  }
  double NextCompletion(double now) const {
    double next = std::numeric_limits<double>::infinity();
    for (const auto& [tag, flow] : flows) next = std::min(next, now + flow.remaining / flow.rate);
    return next;
  }
  void Pass(double seconds) {
    for (auto& [tag, flow] : flows) flow.remaining -= seconds * flow.rate;
  }

 private:
  const std::vector<double> capacities_;
};

// Flows come, are cancelled and end, so resources have one flow, several and one again; whenever one ends,
// it is when the definition says.
TEST(FlowNetworkTest, FlowsThatComeAndGoEndWhenTheDefinitionSays) {
  int shared = 0;  // moments at which a resource had several flows
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    std::vector<double> capacities(random.Between(2, 10));
    for (double& capacity : capacities) capacity = 0.5 + random.Unit();
    FlowNetwork network(capacities);
    PlainNetwork plain(capacities);
    std::map<int, int> numbers;  // by tag: for Cancel()
    double now = 0, next_start = 0;
    for (int started = 0; started < 40 || !plain.flows.empty();) {
      const double next = network.NextCompletion();
      if (!plain.flows.empty()) {
        ASSERT_NEAR(next, plain.NextCompletion(now), 1e-6 * (1 + next));
      }
      if (started < 40 && next_start <= next) {
        plain.Pass(next_start - now);
        now = next_start;
        PlainNetwork::Flow flow;
        std::map<int, double> draws;
        for (int64_t d = random.Between(0, 3); d > 0; --d) {
          draws[static_cast<int>(random.Below(capacities.size()))] = 0.5 + random.Unit();
        }
        for (const auto& [resource, weight] : draws) flow.draws.push_back({resource, weight});
        flow.remaining = 0.1 + random.Unit();
        flow.rate_max = draws.empty() || random.Below(2) == 0
                            ? 0.1 + random.Unit()
                            : std::numeric_limits<double>::infinity();
        numbers[started] = network.Start(now, flow.remaining, flow.draws, started, flow.rate_max);
        plain.flows[started++] = flow;
        next_start = now + 0.3 * random.Unit();
      } else if (random.Below(10) == 0) {
        const double between = now + random.Unit() * (next - now);
        plain.Pass(between - now);
        now = between;
        const int tag = plain.flows.begin()->first;
        network.Cancel(now, numbers[tag]);
        plain.flows.erase(tag);
      } else {
        plain.Pass(next - now);
        now = next;
        const std::vector<int> ended = network.Complete(now);
        ASSERT_FALSE(ended.empty());
        for (const int tag : ended) {
          ASSERT_NEAR(plain.flows.at(tag).remaining, 0, 1e-6);
          plain.flows.erase(tag);
        }
      }
      plain.Settle();
      std::map<int, int> users;
      for (const auto& [tag, flow] : plain.flows) {
        for (const FlowNetwork::Draw& draw : flow.draws) shared += ++users[draw.resource] == 2;
      }
    }
  }
  EXPECT_GT(shared, 1000);
}

}  // namespace
}  // namespace syncopate::cost
