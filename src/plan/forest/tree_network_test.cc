#include "plan/forest/tree_network.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/program_validator.h"
#include "model/topology_makers.h"
#include "plan/forest/arborescence.h"
#include "plan/forest/few_trees.h"
#include "plan/forest/forest.h"
#include "plan/forest/forest_testing.h"
#include "plan/forest/tree_counts.h"

namespace syncopate::plan {
namespace {

PackingNetwork NetworkOf(const Topology& topology, int workers) {
  return *PackingNetwork::Make(topology, *PlaceInOrder(topology, workers), AllOf(workers));
}

std::vector<double> RatesOf(const PackingNetwork& network) {
  std::vector<double> rates;
  for (const PackingResource& resource : network.resources()) rates.push_back(resource.rate);
  return rates;
}

// What the prices prove, by cheapest trees: no other code than the planner's own.
double BoundOf(const PackingNetwork& network, const std::vector<double>& prices) {
  double second = 0;
  for (size_t i = 0; i < prices.size(); ++i) second += prices[i] * network.resources()[i].rate;
  EXPECT_NEAR(second, 1, 1e-9);
  const EdgeCosts costs = network.CostsAt(prices);
  const EdgeCosts reversed = costs.Reversed();
  const Arborescences broadcast(costs);
  const Arborescences reduce(reversed);
  double bound = EdgeCosts::kNone;
  for (int root = 0; root < network.size(); ++root) {
    bound = std::min(bound,
                     CostOf(broadcast.TreeOf(root), costs) + CostOf(reduce.TreeOf(root), reversed));
  }
  return bound;
}

// Rates of both directions, apart by a factor of up to 20; some NICs half-duplex.
Topology UnevenTree(uint64_t seed) {
  Random random(seed);
  const auto some = [&](int lo, int hi) { return static_cast<int>(random.Between(lo, hi)); };
  const std::vector<int> fanout = random.Below(2) == 0
                                      ? std::vector<int>{some(2, 6), some(2, 10)}
                                      : std::vector<int>{some(2, 4), some(1, 4), some(2, 4)};
  std::vector<double> rates;
  for (size_t i = 0; i < fanout.size(); ++i) rates.push_back(1e9 * (0.3 + 3 * random.Unit()));
  Topology topology = SwitchTreeTopology(fanout, rates, 1e-5, 0.9, seed);
  for (size_t i = 0; i + 1 < topology.links.size(); i += 2) {
    if (random.Below(5) == 0) topology.links[i + 1].capacities = topology.links[i].capacities;
  }
  return topology;
}

TEST(TreeGroupsTest, FollowsRacksAndPods) {
  const Topology topology = SwitchTreeTopology({3, 2, 4}, {1e9, 1e9, 1e9}, 1e-5, 0, 1);
  ASSERT_EQ(Validate(topology), absl::OkStatus());
  const auto groups =
      FindTreeGroups(topology, *PlaceInOrder(topology, 24), NetworkOf(topology, 24));
  ASSERT_TRUE(groups.has_value());
  EXPECT_EQ(groups->size(), 1u + 3 + 6 + 24);
  EXPECT_EQ((*groups)[0].children.size(), 3u);
  for (size_t i = 1; i < groups->size(); ++i) {
    EXPECT_LT((*groups)[i].parent, static_cast<int>(i));
    EXPECT_EQ((*groups)[i].out.size(), 1u);  // a link and its capacity are one
    EXPECT_EQ((*groups)[i].in.size(), 1u);
  }
}

TEST(TreeGroupsTest, WaysWithoutBranchesAreOneGroup) {
  // Racks of one host each: the uplink and the NIC are one after the other.
  const Topology topology = SwitchTreeTopology({3, 1}, {1e9, 2e9}, 1e-5, 0, 1);
  const auto groups = FindTreeGroups(topology, *PlaceInOrder(topology, 3), NetworkOf(topology, 3));
  ASSERT_TRUE(groups.has_value());
  EXPECT_EQ(groups->size(), 4u);
}

TEST(TreeGroupsTest, OtherNetworksHaveNone) {
  const Topology mesh = MeshTopology(4, 1e9, 1e-5);
  EXPECT_FALSE(FindTreeGroups(mesh, *PlaceInOrder(mesh, 4), NetworkOf(mesh, 4)).has_value());
  // A second uplink between two racks.
  Topology racks = TwoRackTopology(3, 1e9, 1e9, 1e-5);
  racks.links.push_back(racks.links.back());
  racks.links.back().id = "another";
  EXPECT_FALSE(FindTreeGroups(racks, *PlaceInOrder(racks, 6), NetworkOf(racks, 6)).has_value());
  // A route that goes through the other rack and back.
  Topology detour = TwoRackTopology(2, 1e9, 1e9, 1e-5);
  const std::vector<int> placement = *PlaceInOrder(detour, 4);
  ASSERT_TRUE(FindTreeGroups(detour, placement, NetworkOf(detour, 4)).has_value());
  const auto link = [&](absl::string_view id) {
    for (size_t i = 0; i < detour.links.size(); ++i) {
      if (detour.links[i].id == id) return static_cast<int>(i);
    }
    ADD_FAILURE() << id;
    return 0;
  };
  detour.routes.push_back(
      {placement[0],
       placement[1],
       {link("device0>rack0"), link("rack0>rack1"), link("rack1>rack0"), link("rack0>device1")}});
  EXPECT_FALSE(FindTreeGroups(detour, placement, NetworkOf(detour, 4)).has_value());
  detour.routes[0].links = {link("device0>rack0"), link("rack0>device1")};
  EXPECT_TRUE(FindTreeGroups(detour, placement, NetworkOf(detour, 4)).has_value());
}

TEST(TreeNetworkTest, RingBoundOnAStar) {
  for (const int workers : {2, 3, 8, 40}) {
    const Topology topology = StarTopology(workers, 1e9, 1e-5);
    const auto found = SuggestForTreeNetwork(topology, *PlaceInOrder(topology, workers),
                                             NetworkOf(topology, workers), 0.01, 0);
    ASSERT_TRUE(found.ok() && found->has_value()) << found.status();
    EXPECT_NEAR((*found)->bound, 2.0 * (workers - 1) / workers / 1e9, 1e-15);
    EXPECT_LE((*found)->seconds_per_byte, (*found)->bound * 1.01);
  }
}

// Hosts that receive fast and send slowly, in a rack of their own: it is best to send them all they
// need from outside, though that crosses the uplink twice.
TEST(TreeNetworkTest, GroupsMayBeServedFromOutside) {
  Topology topology = SwitchTreeTopology({2, 2}, {100e9, 100e9}, 1e-5, 0, 1);
  for (Topology::Link& link : topology.links) {
    if (topology.nodes[link.from].id != "device0" && topology.nodes[link.from].id != "device1") {
      continue;
    }
    link.bandwidth = 1e9;
    topology.capacities[link.capacities[0]].bandwidth = 1e9;
  }
  const auto found =
      SuggestForTreeNetwork(topology, *PlaceInOrder(topology, 4), NetworkOf(topology, 4), 0.001, 0);
  ASSERT_TRUE(found.ok() && found->has_value()) << found.status();
  EXPECT_NEAR((*found)->bound, 1e-9, 1e-15);
  EXPECT_LE((*found)->seconds_per_byte, 1.001e-9);
}

TEST(TreeNetworkTest, BoundIsTheBestAndPlansReachIt) {
  int starved = 0;
  for (uint64_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    const Topology topology = UnevenTree(seed);
    const int workers = static_cast<int>(Devices(topology).size());
    const std::vector<int> placement = *PlaceInOrder(topology, workers);
    const PackingNetwork network = NetworkOf(topology, workers);
    const auto groups = FindTreeGroups(topology, placement, network);
    ASSERT_TRUE(groups.has_value());
    const auto surplus = SolveTreeNetwork(*groups, RatesOf(network));
    ASSERT_TRUE(surplus.ok()) << surplus.status();
    for (size_t i = 1; i < groups->size(); ++i) starved += surplus->broadcast[i] < -1e-6;
    const auto found = SuggestForTreeNetwork(topology, placement, network, 0.008, 0);
    ASSERT_TRUE(found.ok() && found->has_value()) << found.status();
    EXPECT_NEAR(BoundOf(network, (*found)->prices) / (*found)->bound, 1, 1e-6);
    EXPECT_GE((*found)->seconds_per_byte, (*found)->bound * (1 - 1e-9));
    EXPECT_LE((*found)->seconds_per_byte, (*found)->bound * 1.008);
    EXPECT_NEAR(SecondsOf(network, (*found)->pairs), (*found)->seconds_per_byte, 1e-20);
    double sum = 0;
    for (const TreePair& pair : (*found)->pairs) {
      sum += pair.share;
      EXPECT_EQ(pair.reduce.root, pair.broadcast.root);
      for (const WorkerTree* tree : {&pair.reduce, &pair.broadcast}) {
        EXPECT_EQ(EdgesFromRoot(*tree).size(), static_cast<size_t>(workers - 1));
      }
    }
    EXPECT_NEAR(sum, 1, 1e-9);
  }
  EXPECT_GT(starved, 20) << "the other side of the program was not tried";
}

TEST(TreeNetworkTest, ColumnGenerationFindsTheSameBound) {
  for (uint64_t seed = 200; seed < 220; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    const Topology topology = UnevenTree(seed);
    const int workers = static_cast<int>(Devices(topology).size());
    const PackingNetwork network = NetworkOf(topology, workers);
    const auto groups = FindTreeGroups(topology, *PlaceInOrder(topology, workers), network);
    const auto surplus = SolveTreeNetwork(*groups, RatesOf(network));
    ASSERT_TRUE(surplus.ok()) << surplus.status();
    PackingOptions options;
    options.gap = 0.0005;
    const absl::StatusOr<Packing> packing = Packer(network, AllOf(workers), options).Solve();
    ASSERT_TRUE(packing.ok()) << packing.status();
    EXPECT_NEAR(packing->seconds_per_byte / surplus->seconds_per_byte, 1, 0.001);
  }
}

TEST(TreeNetworkTest, FewerTreesIfAskedFor) {
  const Topology topology = SwitchTreeTopology({4, 8}, {1e9, 1e9}, 1e-5, 0.5, 3);
  const auto found = SuggestForTreeNetwork(topology, *PlaceInOrder(topology, 32),
                                           NetworkOf(topology, 32), 0.01, 5);
  ASSERT_TRUE(found.ok() && found->has_value()) << found.status();
  EXPECT_LE((*found)->pairs.size(), 5u);
}

TEST(BuildTreeTest, HasTheChildrenThatItShould) {
  const Topology topology = SwitchTreeTopology({3, 3}, {1e9, 1e9}, 1e-5, 0, 1);
  const PackingNetwork network = NetworkOf(topology, 9);
  const auto groups = FindTreeGroups(topology, *PlaceInOrder(topology, 9), network);
  ASSERT_TRUE(groups.has_value());
  Random random(5);
  for (int round = 0; round < 200; ++round) {
    // Any surpluses of members that sum to two less than there are.
    std::vector<int> by_member(9, 0);
    for (int i = 0; i < 7; ++i) ++by_member[random.Below(9)];
    std::vector<int> surplus(groups->size(), 0);
    for (size_t i = 0; i < groups->size(); ++i) {
      if ((*groups)[i].member >= 0) surplus[i] = by_member[(*groups)[i].member];
    }
    const int root = static_cast<int>(random.Below(9));
    const WorkerTree tree = BuildTree(*groups, surplus, root);
    EXPECT_EQ(EdgesFromRoot(tree).size(), 8u);
    std::vector<int> children(9, 0);
    for (const auto& [parent, child] : EdgesFromRoot(tree)) ++children[parent];
    ++by_member[root];
    EXPECT_EQ(children, by_member);
  }
}

class LargeForestTest : public ::testing::TestWithParam<double> {};

TEST_P(LargeForestTest, ThousandWorkersWithinOnePercent) {
  const int workers = 1024;
  const Topology topology =
      SwitchTreeTopology({8, 8, 16}, {1.5e9, 1.2e9, 1e9}, 1e-5, GetParam(), 11);
  const std::vector<int> placement = *PlaceInOrder(topology, workers);
  const absl::StatusOr<ForestPlan> plan = PlanForest(topology, placement, AllOf(workers), {});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_LE(plan->certificate.gap(), 0.01);
  EXPECT_LE(plan->depth, 16);
  EXPECT_EQ(
      CheckCertificate(topology, placement, AllOf(workers), true, plan->pairs, plan->certificate),
      absl::OkStatus());
  CollectiveRequest request;
  request.workers = workers;
  request.active = AllOf(workers);
  request.elements = 1'000'000;
  const absl::StatusOr<Program> program = MakeForestProgram(request, *plan, 1 << 16);
  ASSERT_TRUE(program.ok()) << program.status();
  const absl::StatusOr<ProgramProof> proof = ProveProgram(*program);
  EXPECT_TRUE(proof.ok()) << proof.status();
}

INSTANTIATE_TEST_SUITE_P(Rates, LargeForestTest, ::testing::Values(0.0, 0.5));

TEST(LargeForestLimitsTest, DepthAndNumberCanBeLimited) {
  const Topology topology = SwitchTreeTopology({4, 5, 10}, {1.5e9, 1.2e9, 1e9}, 1e-5, 0.5, 2);
  const std::vector<int> placement = *PlaceInOrder(topology, 200);
  ForestOptions options;
  options.depth_max = 2;
  options.trees_max = 12;
  const absl::StatusOr<ForestPlan> plan = PlanForest(topology, placement, AllOf(200), options);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_LE(plan->depth, 2);
  EXPECT_LE(plan->pairs.size(), 12u);
  EXPECT_EQ(CheckCertificate(topology, placement, AllOf(200), true, plan->pairs, plan->certificate),
            absl::OkStatus());
}

}  // namespace
}  // namespace syncopate::plan
