#include "plan/forest/steiner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "plan/forest/lemon_arborescence.h"

namespace syncopate::plan {
namespace {

enum class Shape { kComplete, kSparse, kZeros, kTies, kNics, kRacks };

struct Problem {
  EdgeCosts costs{0};
  int root = 0;
  std::vector<int> terminals;
};

EdgeCosts RandomCosts(Shape shape, int workers, Random& random) {
  EdgeCosts costs(workers);
  std::vector<double> up(workers), down(workers);
  for (int worker = 0; worker < workers; ++worker) {
    up[worker] = random.Below(4) == 0 ? 0.05 : random.Unit();
    down[worker] = random.Unit();
  }
  for (int from = 0; from < workers; ++from) {
    for (int to = 0; to < workers; ++to) {
      if (from == to) continue;
      double cost = 0;
      switch (shape) {
        case Shape::kComplete:
          cost = random.Unit();
          break;
        case Shape::kSparse:
          cost = random.Below(3) == 0 ? random.Unit() : EdgeCosts::kNone;
          break;
        case Shape::kZeros:
          cost = random.Below(4) == 0 ? 0 : random.Unit();
          break;
        case Shape::kTies:
          cost = static_cast<double>(random.Between(1, 3));
          break;
        case Shape::kNics:
          cost = up[from] + down[to];
          break;
        case Shape::kRacks:
          cost = from / 4 == to / 4 ? 0.1 * up[from] : 1 + up[from / 4] + down[to / 4];
          break;
      }
      costs.set(from, to, cost);
    }
  }
  return costs;
}

Problem RandomProblem(Shape shape, int workers, int terminals, Random& random) {
  Problem problem;
  problem.costs = RandomCosts(shape, workers, random);
  std::vector<int> order(workers);
  std::iota(order.begin(), order.end(), 0);
  for (int i = workers - 1; i > 0; --i) std::swap(order[i], order[random.Below(i + 1)]);
  problem.root = order[0];
  problem.terminals.assign(order.begin() + 1, order.begin() + 1 + terminals);
  return problem;
}

// Every worker hangs on the root, every leaf is a terminal, every edge exists; all terminals that
// are within reach are in it.
void ExpectValid(const Problem& problem, const WorkerTree& tree) {
  const int workers = problem.costs.workers();
  ASSERT_EQ(tree.root, problem.root);
  ASSERT_EQ(tree.parent.size(), static_cast<size_t>(workers));
  ASSERT_EQ(tree.parent[tree.root], tree.root);
  std::vector<char> may_be_leaf(workers, 0);
  may_be_leaf[problem.root] = 1;
  for (const int terminal : problem.terminals) may_be_leaf[terminal] = 1;
  std::vector<int> children(workers, 0);
  size_t members = 0;
  for (int worker = 0; worker < workers; ++worker) {
    if (tree.parent[worker] < 0) continue;
    ++members;
    if (worker == tree.root) continue;
    ++children[tree.parent[worker]];
    EXPECT_TRUE(std::isfinite(problem.costs.at(tree.parent[worker], worker)));
  }
  EXPECT_EQ(EdgesFromRoot(tree).size(), members - 1) << "has a cycle";
  for (int worker = 0; worker < workers; ++worker) {
    if (tree.parent[worker] < 0 || children[worker] > 0) continue;
    EXPECT_TRUE(may_be_leaf[worker]) << worker << " is a leaf for nothing";
  }
  for (const int terminal : problem.terminals) {
    const bool within_reach =
        std::isfinite(ExactSteinerCost(problem.costs, problem.root, {terminal}));
    EXPECT_EQ(tree.parent[terminal] >= 0, within_reach) << "terminal " << terminal;
  }
}

class SteinerOnRandomGraphs : public ::testing::TestWithParam<Shape> {};

TEST_P(SteinerOnRandomGraphs, BoundAtMostExactAtMostFoundWhichIsClose) {
  double worst = 1;
  double sum = 0;
  int count = 0;
  for (uint64_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Random random(seed);
    const int workers = static_cast<int>(random.Between(3, 20));
    const int terminals = static_cast<int>(random.Between(1, std::min(workers - 1, 9)));
    const Problem problem = RandomProblem(GetParam(), workers, terminals, random);
    const double exact = ExactSteinerCost(problem.costs, problem.root, problem.terminals);
    const double bound = SteinerLowerBound(problem.costs, problem.root, problem.terminals);
    const WorkerTree tree = FindSteinerTree(problem.costs, problem.root, problem.terminals);
    ExpectValid(problem, tree);
    if (std::isinf(exact)) {
      EXPECT_TRUE(std::isinf(bound));
      continue;
    }
    const double cost = CostOf(tree, problem.costs);
    EXPECT_LE(bound, exact + 1e-9);
    EXPECT_GE(bound, 0.5 * exact - 1e-9) << "a bound that says little";
    EXPECT_LE(exact, cost + 1e-9);
    const double ratio = exact > 0 ? cost / exact : cost > 1e-9 ? 2 : 1;
    worst = std::max(worst, ratio);
    sum += ratio;
    ++count;
  }
  ASSERT_GT(count, 50);
  RecordProperty("mean_ratio", absl::StrCat(sum / count));
  RecordProperty("worst_ratio", absl::StrCat(worst));
  EXPECT_LE(sum / count, 1.02);
  EXPECT_LE(worst, 1.15);
}

std::string NameOf(const ::testing::TestParamInfo<Shape>& shape) {
  constexpr const char* kNames[] = {"Complete", "Sparse", "Zeros", "Ties", "Nics", "Racks"};
  return kNames[static_cast<int>(shape.param)];
}

INSTANTIATE_TEST_SUITE_P(Shapes, SteinerOnRandomGraphs,
                         ::testing::Values(Shape::kComplete, Shape::kSparse, Shape::kZeros,
                                           Shape::kTies, Shape::kNics, Shape::kRacks),
                         NameOf);

// Where a tree must span everything there is an exact algorithm to compare with.
TEST(Steiner, SpanningAllWorkersIsTheCheapestArborescence) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Random random(seed);
    const int workers = static_cast<int>(random.Between(2, 40));
    const Shape shape = static_cast<Shape>(seed % 6 == 1 ? 0 : seed % 6);
    const Problem problem = RandomProblem(shape, workers, workers - 1, random);
    const double exact = LemonArborescenceCost(workers, problem.costs.row(0), problem.root);
    const WorkerTree tree = FindSteinerTree(problem.costs, problem.root, problem.terminals);
    ExpectValid(problem, tree);
    EXPECT_NEAR(CostOf(tree, problem.costs), exact, 1e-9);
    EXPECT_LE(SteinerLowerBound(problem.costs, problem.root, problem.terminals), exact + 1e-9);
  }
}

// Two dear steps to a hub that then serves everyone cheaply, against direct edges that look better
// one by one.
TEST(Steiner, GoesThroughRelaysThatNoSingleTerminalWouldChoose) {
  constexpr int kTerminals = 6;
  constexpr int kFirst = 7, kHub = 8;
  EdgeCosts costs(9);
  std::vector<int> terminals;
  for (int terminal = 1; terminal <= kTerminals; ++terminal) {
    costs.set(0, terminal, 1);
    costs.set(kHub, terminal, 0.1);
    terminals.push_back(terminal);
  }
  costs.set(0, kFirst, 0.6);
  costs.set(kFirst, kHub, 0.6);
  const WorkerTree tree = FindSteinerTree(costs, 0, terminals);
  EXPECT_NEAR(CostOf(tree, costs), 1.8, 1e-12);
  EXPECT_EQ(tree.parent[1], kHub);
  EXPECT_NEAR(ExactSteinerCost(costs, 0, terminals), 1.8, 1e-12);
}

TEST(Steiner, LeavesOutWhatCannotBeReached) {
  EdgeCosts costs(5);
  costs.set(0, 1, 1);
  costs.set(1, 2, 1);
  costs.set(3, 4, 1);
  costs.set(4, 0, 1);
  const WorkerTree tree = FindSteinerTree(costs, 0, {2, 4});
  EXPECT_EQ(tree.parent, (std::vector<int>{0, 0, 1, -1, -1}));
  EXPECT_EQ(SteinerLowerBound(costs, 0, {2, 4}), EdgeCosts::kNone);
  EXPECT_EQ(ExactSteinerCost(costs, 0, {2, 4}), EdgeCosts::kNone);
}

TEST(Steiner, RootAloneNeedsNoEdges) {
  EdgeCosts costs(3);
  costs.set(0, 1, 1);
  for (const std::vector<int>& terminals : {std::vector<int>{}, std::vector<int>{1}}) {
    const WorkerTree tree = FindSteinerTree(costs, 1, terminals);
    EXPECT_EQ(tree.parent, (std::vector<int>{-1, 1, -1}));
    EXPECT_EQ(SteinerLowerBound(costs, 1, terminals), 0);
    EXPECT_EQ(ExactSteinerCost(costs, 1, terminals), 0);
  }
}

TEST(Steiner, TakesTerminalsNamedTwiceOnce) {
  EdgeCosts costs(3);
  costs.set(0, 1, 2);
  costs.set(1, 2, 1);
  const std::vector<int> terminals = {2, 0, 2, 2};
  EXPECT_EQ(FindSteinerTree(costs, 0, terminals).parent, (std::vector<int>{0, 0, 1}));
  EXPECT_EQ(SteinerLowerBound(costs, 0, terminals), 3);
  EXPECT_EQ(ExactSteinerCost(costs, 0, terminals), 3);
}

TEST(Steiner, OneFinderServesManyRoots) {
  Random random(7);
  const Problem problem = RandomProblem(Shape::kComplete, 16, 8, random);
  SteinerFinder finder(problem.costs);
  for (const int root : problem.terminals) {
    EXPECT_EQ(finder.Find(root, problem.terminals),
              FindSteinerTree(problem.costs, root, problem.terminals));
  }
}

// More workers than the search keeps all paths for.
TEST(Steiner, LargeNetworksGetATreeWithinTheBound) {
  Random random(3);
  const Problem problem = RandomProblem(Shape::kRacks, 300, 40, random);
  const WorkerTree tree = FindSteinerTree(problem.costs, problem.root, problem.terminals);
  const double bound = SteinerLowerBound(problem.costs, problem.root, problem.terminals);
  for (const int terminal : problem.terminals) EXPECT_GE(tree.parent[terminal], 0);
  EXPECT_FALSE(EdgesFromRoot(tree).empty());
  EXPECT_LE(CostOf(tree, problem.costs), 1.2 * bound);
  EXPECT_GE(CostOf(tree, problem.costs), bound - 1e-9);
}

TEST(Steiner, ExactSearchRefusesTooManyTerminals) {
  Random random(5);
  const Problem problem = RandomProblem(Shape::kComplete, 20, kExactTerminalsMax + 1, random);
  EXPECT_TRUE(std::isnan(ExactSteinerCost(problem.costs, problem.root, problem.terminals)));
}

}  // namespace
}  // namespace syncopate::plan
