#include "plan/collective/binomial_tree.h"

#include <algorithm>

#include "gtest/gtest.h"
#include "plan/collective/planner_testing.h"

namespace syncopate::plan::testing {
namespace {

TEST(BinomialTreeTest, ReachesEverybodyOnceInLogRounds) {
  for (int size = 1; size <= 70; ++size) {
    std::vector<int> depth(static_cast<size_t>(size), -1);
    std::vector<int> reach(static_cast<size_t>(size), 0);  // the indices of the subtree
    depth[0] = 0;
    const std::vector<BinomialEdge> edges = BinomialTree(size);
    EXPECT_EQ(edges.size(), static_cast<size_t>(size - 1));
    for (const BinomialEdge& edge : edges) {
      ASSERT_GE(depth[static_cast<size_t>(edge.parent)], 0) << "sends before it has received";
      ASSERT_EQ(depth[static_cast<size_t>(edge.child)], -1) << "receives twice";
      depth[static_cast<size_t>(edge.child)] = depth[static_cast<size_t>(edge.parent)] + 1;
    }
    EXPECT_LE(*std::max_element(depth.begin(), depth.end()), CeilLog2(size));
    for (auto edge = edges.rbegin(); edge != edges.rend(); ++edge) {
      reach[static_cast<size_t>(edge->child)] += 1;
      reach[static_cast<size_t>(edge->parent)] += reach[static_cast<size_t>(edge->child)];
      EXPECT_EQ(reach[static_cast<size_t>(edge->child)], edge->span) << size;
    }
  }
}

}  // namespace
}  // namespace syncopate::plan::testing
