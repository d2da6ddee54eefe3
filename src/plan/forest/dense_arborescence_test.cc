#include "plan/forest/dense_arborescence.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "plan/forest/lemon_arborescence.h"

namespace syncopate::plan {
namespace {

EdgeCosts RandomCosts(int workers, bool ties, Random& random) {
  EdgeCosts costs(workers);
  for (int from = 0; from < workers; ++from) {
    for (int to = 0; to < workers; ++to) {
      if (from != to) costs.set(from, to, ties ? random.Below(3) : random.Unit());
    }
  }
  return costs;
}

std::vector<int> FirstWorkers(int count) {
  std::vector<int> members(count);
  std::iota(members.begin(), members.end(), 0);
  return members;
}

TEST(DenseArborescence, CostsWhatLemonSays) {
  DenseArborescence arborescence;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Random random(seed);
    const int workers = static_cast<int>(random.Between(1, 30));
    const EdgeCosts costs = RandomCosts(workers, seed % 2 == 0, random);
    const double cost = arborescence.Solve(costs.Reversed(), FirstWorkers(workers));
    EXPECT_NEAR(cost, LemonArborescenceCost(workers, costs.row(0), 0), 1e-9);
    const WorkerTree tree{.root = 0, .parent = arborescence.parent()};
    EXPECT_EQ(static_cast<int>(EdgesFromRoot(tree).size()), workers - 1);
    EXPECT_NEAR(CostOf(tree, costs), cost, 1e-9);
  }
}

TEST(DenseArborescence, PricesBoundWhatOneMoreWorkerCanSave) {
  DenseArborescence arborescence;
  int saved_something = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Random random(seed);
    const int workers = static_cast<int>(random.Between(4, 16));
    EdgeCosts costs = RandomCosts(workers, false, random);
    const int extra = workers - 1;
    for (int to = 0; to < extra; ++to) costs.set(extra, to, 0.2 * costs.at(extra, to));
    const EdgeCosts incoming = costs.Reversed();
    const double without = arborescence.Solve(incoming, FirstWorkers(extra));
    double most = 0;
    double reach = EdgeCosts::kNone;
    for (int member = 0; member < extra; ++member) {
      reach = std::min(reach, costs.at(member, extra));
      if (member == 0) continue;
      most += std::max(0.0, arborescence.prices()[member] - costs.at(extra, member));
    }
    const double with = arborescence.Solve(incoming, FirstWorkers(workers));
    EXPECT_GE(with, without - (most - reach) - 1e-9);
    if (with < without - 1e-9) ++saved_something;
  }
  EXPECT_GT(saved_something, 20);
}

TEST(DenseArborescence, SpansOnlyItsMembers) {
  EdgeCosts costs(4);
  costs.set(3, 1, 5);
  costs.set(3, 0, 1);
  costs.set(0, 1, 1);
  DenseArborescence arborescence;
  EXPECT_EQ(arborescence.Solve(costs.Reversed(), {3, 1}), 5);
  EXPECT_EQ(arborescence.Solve(costs.Reversed(), {3, 1, 0}), 2);
  EXPECT_EQ(arborescence.parent(), (std::vector<int>{0, 2, 0}));
  EXPECT_EQ(arborescence.Solve(costs.Reversed(), {3}), 0);
}

TEST(DenseArborescence, InfiniteIfAMemberCannotBeReached) {
  EdgeCosts costs(4);
  costs.set(0, 1, 1);
  costs.set(2, 3, 1);
  costs.set(3, 2, 1);  // a cycle that nothing leads to
  DenseArborescence arborescence;
  EXPECT_EQ(arborescence.Solve(costs.Reversed(), {0, 1, 2, 3}), EdgeCosts::kNone);
  EXPECT_EQ(arborescence.Solve(costs.Reversed(), {0, 1}), 1);
}

}  // namespace
}  // namespace syncopate::plan
