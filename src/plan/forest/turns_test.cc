#include "plan/forest/turns.h"

#include <numeric>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/topology_makers.h"
#include "plan/forest/few_trees.h"
#include "plan/forest/forest.h"
#include "plan/forest/forest_testing.h"
#include "plan/forest/paper_topologies.h"

namespace syncopate::plan {
namespace {

TEST(TurnsTest, OneForEachWorkerOfAMesh) {
  for (const int workers : {2, 5, 6, 8}) {
    const Topology topology = MeshTopology(workers, 1e9, 1e-5);
    const std::vector<int> placement = *PlaceInOrder(topology, workers);
    const PackingNetwork network = *PackingNetwork::Make(topology, placement, AllOf(workers));
    const Turns turns = FindTurns(topology, placement, network, AllOf(workers));
    EXPECT_EQ(turns.all.size(), static_cast<size_t>(workers));
    std::set<int> images;
    for (const Permutation& turn : turns.all) images.insert(turn[0]);
    EXPECT_EQ(images.size(), static_cast<size_t>(workers)) << "everybody can be the first";
    EXPECT_EQ(JoinImages(network, AllOf(workers), turns.generators).resources().size(),
              static_cast<size_t>(workers - 1));
  }
}

TEST(TurnsTest, HostsAndTheirWorkersTurn) {
  const Topology topology = *PaperTopology(MakePaperCluster(3, 8, BetweenNetwork::kGpuPairs, 10));
  const std::vector<int> placement = *PlaceInOrder(topology, 24);
  const PackingNetwork network = *PackingNetwork::Make(topology, placement, AllOf(24));
  const Turns turns = FindTurns(topology, placement, network, AllOf(24));
  EXPECT_EQ(turns.all.size(), 24u);
  EXPECT_TRUE(StillHold(turns, network, AllOf(24)));
}

TEST(TurnsTest, OneSlowLinkEndsThem) {
  Topology topology = MeshTopology(6, 1e9, 1e-5);
  const std::vector<int> placement = *PlaceInOrder(topology, 6);
  PackingNetwork network = *PackingNetwork::Make(topology, placement, AllOf(6));
  const Turns turns = FindTurns(topology, placement, network, AllOf(6));
  topology.links[7].bandwidth = 0.9e9;
  ASSERT_EQ(network.UpdateRates(topology), absl::OkStatus());
  EXPECT_FALSE(StillHold(turns, network, AllOf(6)));
  EXPECT_EQ(FindTurns(topology, placement, network, AllOf(6)).all.size(), 1u);
}

TEST(TurnsTest, ImagesTakeAsLongAsTheJoinedNetworkSays) {
  const Topology topology = MeshTopology(6, 1e9, 1e-5);
  const std::vector<int> placement = *PlaceInOrder(topology, 6);
  const PackingNetwork network = *PackingNetwork::Make(topology, placement, AllOf(6));
  const Turns turns = FindTurns(topology, placement, network, AllOf(6));
  const PackingNetwork joined = JoinImages(network, AllOf(6), turns.generators);
  const WorkerTree star = {2, {2, 2, 2, 2, 2, 2}};
  const WorkerTree chain = {2, {1, 2, 2, 2, 3, 4}};
  const std::vector<TreePair> pairs = {{star, chain, 0.25, false}, {chain, star, 0.75, false}};
  const std::vector<TreePair> images = ImagesOf(pairs, turns);
  EXPECT_EQ(images.size(), 12u);
  EXPECT_NEAR(SecondsOf(network, images), SecondsOf(joined, pairs), 1e-20);
}

TEST(TurnsTest, PlansAndPlansAgain) {
  const int workers = 40;
  Topology topology = MeshTopology(workers, 1e9, 1e-5);
  const std::vector<int> placement = *PlaceInOrder(topology, workers);
  absl::StatusOr<ForestPlanner> planner =
      ForestPlanner::Make(topology, placement, AllOf(workers), {});
  ASSERT_TRUE(planner.ok()) << planner.status();
  for (const double rate : {1e9, 0.5e9}) {
    for (Topology::Link& link : topology.links) link.bandwidth = rate;
    ASSERT_EQ(planner->Update(topology), absl::OkStatus());
    const absl::StatusOr<ForestPlan> plan = planner->Plan();
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_NEAR(plan->seconds_per_byte, 2.0 / workers / rate, 0.02 / workers / rate);
    EXPECT_LE(plan->certificate.gap(), 0.01);
    EXPECT_EQ(
        CheckCertificate(topology, placement, AllOf(workers), true, plan->pairs, plan->certificate),
        absl::OkStatus());
  }
}

TEST(TurnsTest, EightDgx) {
  const Topology topology = *PaperTopology(MakePaperCluster(8, 8, BetweenNetwork::kGpuPairs, 10));
  const std::vector<int> placement = *PlaceInOrder(topology, 64);
  const absl::StatusOr<ForestPlan> plan = PlanForest(topology, placement, AllOf(64), {});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_LE(plan->certificate.gap(), 0.01);
  EXPECT_EQ(CheckCertificate(topology, placement, AllOf(64), true, plan->pairs, plan->certificate),
            absl::OkStatus());
}

}  // namespace
}  // namespace syncopate::plan
