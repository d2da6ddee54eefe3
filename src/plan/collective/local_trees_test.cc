#include "plan/collective/local_trees.h"

#include <cstdlib>

#include "gtest/gtest.h"
#include "model/topology_makers.h"
#include "plan/collective/planner_testing.h"

namespace syncopate::plan::testing {
namespace {

TEST(LocalTreesTest, StraightToTheRootWhereEveryPairHasItsOwnLink) {
  const Topology mesh = MeshTopology(6, 1e9, 1e-5);
  const auto trees = *PackLocalTrees(mesh, *PlaceInOrder(mesh, 6), {{0, 2, 3}, {1, 4, 5}});
  ASSERT_EQ(trees.size(), 6u);
  for (const PlannerOptions::LocalTree& tree : trees) {
    ASSERT_EQ(tree.edges.size(), 2u);
    for (const auto& [parent, child] : tree.edges) EXPECT_EQ(parent, tree.root);
  }
}

// Four devices in a line of fast links; all other pairs are slow.
TEST(LocalTreesTest, AlongFastLinks) {
  Topology mesh = MeshTopology(4, 1e7, 1e-5);
  for (Topology::Link& link : mesh.links) {
    if (std::abs(link.from - link.to) == 1) link.bandwidth = 1e9;
  }
  const auto trees = *PackLocalTrees(mesh, *PlaceInOrder(mesh, 4), {{0, 1, 2, 3}});
  for (const PlannerOptions::LocalTree& tree : trees) {
    for (const auto& [parent, child] : tree.edges) EXPECT_EQ(std::abs(parent - child), 1);
  }
}

TEST(LocalTreesTest, AreValidOptionsOnAnyNetwork) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Random random(seed);
    CollectiveRequest request = RandomRequest(Collective::kAllReduce, &random);
    PlannerOptions options = RandomOptions(request, &random);
    if (options.levels.empty()) continue;
    const Topology topology = RandomTopology(request.workers, seed);
    const auto trees =
        PackLocalTrees(topology, *PlaceInOrder(topology, request.workers), options.levels[0]);
    ASSERT_TRUE(trees.ok()) << trees.status();
    EXPECT_EQ(trees->size(), request.active.size());
    options.local_trees = *trees;
    PlanAndProve(PlannerOf(Collective::kAllReduce, "blink"), request, options);
    PlanAndProve(PlannerOf(Collective::kAllReduce, "plink"), request, options);
  }
}

}  // namespace
}  // namespace syncopate::plan::testing
