#include "plan/forest/flow_greedy.h"

#include <gtest/gtest.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "plan/forest/shortest_paths.h"
#include "plan/forest/steiner.h"

namespace syncopate::plan {
namespace {

constexpr int64_t kPlenty = 1'000'000'000;

TEST(FlowGreedy, SharesARelayThatEachTerminalAloneWouldNotUse) {
  // Relay 4 serves 1, 2 and 3 together for 1.5 + 3 * 0.1; alone, each is nearer to the root.
  EdgeCosts costs(5);
  for (int terminal = 1; terminal <= 3; ++terminal) {
    costs.set(0, terminal, 1);
    costs.set(4, terminal, 0.1);
  }
  costs.set(0, 4, 1.5);
  const std::vector<int> terminals = {1, 2, 3};
  const EdgeCosts incoming = costs.Reversed();
  EXPECT_EQ(FlowGreedy(incoming).Find(0, terminals, kPlenty).parent,
            (std::vector<int>{0, 4, 4, 4, 0}));
  EXPECT_EQ(NearestTerminalTree(costs, 0, terminals).parent, (std::vector<int>{0, 0, 0, 0, -1}));
}

TEST(FlowGreedy, LetsNoTerminalDrainTwiceIntoAWorker) {
  // Both ways from 3 to 0 fill at the same time; the tree may have only one of them.
  EdgeCosts costs(4);
  costs.set(0, 1, 1);
  costs.set(0, 2, 1);
  costs.set(1, 3, 1);
  costs.set(2, 3, 1);
  const EdgeCosts incoming = costs.Reversed();
  const WorkerTree tree = FlowGreedy(incoming).Find(0, {3}, kPlenty);
  EXPECT_EQ(EdgesFromRoot(tree).size(), 2u);
  EXPECT_EQ(CostOf(tree, costs), 2);
}

TEST(FlowGreedy, ReachesAllWithinTwiceTheLeastCost) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Random random(seed);
    const int workers = static_cast<int>(random.Between(3, 16));
    EdgeCosts costs(workers);
    for (int from = 0; from < workers; ++from) {
      for (int to = 0; to < workers; ++to) {
        if (from != to) costs.set(from, to, random.Below(5) == 0 ? 0 : random.Unit());
      }
    }
    std::vector<int> terminals;
    for (int terminal = 1; terminal < workers; terminal += 2) terminals.push_back(terminal);
    const EdgeCosts incoming = costs.Reversed();
    FlowGreedy greedy(incoming);
    const WorkerTree tree = greedy.Find(0, terminals, kPlenty);
    for (const int terminal : terminals) EXPECT_GE(tree.parent[terminal], 0);
    EXPECT_FALSE(EdgesFromRoot(tree).empty()) << "has a cycle";
    EXPECT_LE(CostOf(tree, costs), 2 * ExactSteinerCost(costs, 0, terminals) + 1e-9);
    EXPECT_EQ(greedy.Find(0, terminals, kPlenty), tree) << "the second call differs";
  }
}

TEST(FlowGreedy, LeavesTerminalsOutWhenItHasNoWorkLeftOrNoWay) {
  EdgeCosts costs(3);
  costs.set(0, 1, 1);
  const EdgeCosts incoming = costs.Reversed();
  EXPECT_EQ(FlowGreedy(incoming).Find(0, {1, 2}, 0).parent, (std::vector<int>{0, -1, -1}));
  EXPECT_EQ(FlowGreedy(incoming).Find(0, {1, 2}, kPlenty).parent, (std::vector<int>{0, 0, -1}));
}

TEST(ShortestPaths, GoRoundDearEdges) {
  EdgeCosts costs(4);
  costs.set(0, 1, 5);
  costs.set(0, 2, 1);
  costs.set(2, 1, 1);
  const EdgeCosts paths = PathCosts(costs);
  EXPECT_EQ(paths.at(0, 1), 2);
  EXPECT_EQ(paths.at(1, 0), EdgeCosts::kNone);
  EXPECT_EQ(paths.at(3, 3), 0);
  EXPECT_EQ(ShortestPathTree(costs, 0).parent, (std::vector<int>{0, 2, 0, -1}));
}

}  // namespace
}  // namespace syncopate::plan
