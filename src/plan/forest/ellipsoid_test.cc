#include "plan/forest/ellipsoid.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "plan/forest/exact_testing.h"
#include "plan/forest/steiner.h"

namespace syncopate::plan {
namespace {

struct Network {
  int workers = 0;
  std::vector<double> capacities;
  EdgeResources edges;
  std::vector<int> active;
};

// Every ordered pair has a link of its own.
Network Mesh(int workers, int active, double capacity = 1) {
  Network network{.workers = workers, .capacities = {}, .edges = {}, .active = {}};
  network.edges.resize(workers * workers);
  for (int from = 0; from < workers; ++from) {
    for (int to = 0; to < workers; ++to) {
      if (from == to) continue;
      network.edges[from * workers + to] = {static_cast<int>(network.capacities.size())};
      network.capacities.push_back(capacity);
    }
  }
  network.active.resize(active);
  std::iota(network.active.begin(), network.active.end(), 0);
  return network;
}

// Every worker has one way out and one way in, and all meet at a switch.
Network Star(int workers, int active) {
  Network network = Mesh(workers, active);
  network.capacities.assign(2 * workers, 1);
  for (int from = 0; from < workers; ++from) {
    for (int to = 0; to < workers; ++to) {
      if (from != to) network.edges[from * workers + to] = {from, workers + to};
    }
  }
  return network;
}

TreePricing PricingFor(const Network& network, TreeDirection direction) {
  return [&network, direction](const std::vector<double>& prices, int root, double* cost,
                               std::vector<double>* load) {
    const int workers = network.workers;
    EdgeCosts costs(workers);
    for (int from = 0; from < workers; ++from) {
      for (int to = 0; to < workers; ++to) {
        const std::vector<int>& resources = network.edges[from * workers + to];
        if (resources.empty()) continue;
        double sum = 0;
        for (const int resource : resources) sum += prices[resource];
        costs.set(from, to, sum);
      }
    }
    if (direction == TreeDirection::kReduce) costs = costs.Reversed();
    WorkerTree tree = FindSteinerTree(costs, root, network.active);
    bool complete = true;
    for (const int worker : network.active) complete = complete && tree.parent[worker] >= 0;
    *cost = complete ? CostOf(tree, costs) : EdgeCosts::kNone;
    *load = LoadsOf(tree, direction, network.edges, network.capacities.size());
    return tree;
  };
}

double RateOf(const std::vector<std::vector<WorkerTree>>& trees_of_roots, const Network& network,
              TreeDirection direction) {
  std::vector<std::vector<double>> loads;
  for (const std::vector<WorkerTree>& trees : trees_of_roots) {
    for (const WorkerTree& tree : trees) {
      loads.push_back(LoadsOf(tree, direction, network.edges, network.capacities.size()));
    }
  }
  // Close to 1, whatever the unit of the capacities.
  std::vector<double> capacities = network.capacities;
  const double unit = *std::max_element(capacities.begin(), capacities.end());
  for (double& capacity : capacities) capacity /= unit;
  return unit * BestPackingRate(loads, capacities);
}

double ExactRate(const Network& network, TreeDirection direction, absl::Span<const int> roots) {
  std::vector<std::vector<WorkerTree>> trees;
  for (const int root : roots) {
    trees.push_back(AllTrees(network.workers, network.active, root, direction, network.edges));
  }
  return RateOf(trees, network, direction);
}

TEST(Ellipsoid, CutsKeepWhatTheyMayNotLoseAndLoseVolume) {
  for (size_t dimensions = 2; dimensions <= 9; ++dimensions) {
    SCOPED_TRACE(absl::StrCat(dimensions, " dimensions"));
    Random random(dimensions);
    // A point that all cuts leave in, and points near it.
    std::vector<double> kept(dimensions);
    for (double& part : kept) part = 0.5 * random.Unit() / std::sqrt(dimensions);
    Ellipsoid ellipsoid(std::vector<double>(dimensions, 0), 1);
    ASSERT_TRUE(ellipsoid.Contains(kept));
    int cuts = 0;
    for (int i = 0; i < 300; ++i) {
      std::vector<double> normal(dimensions);
      double limit = 1e-5;
      double at_center = 0;
      for (size_t j = 0; j < dimensions; ++j) {
        normal[j] = random.Unit() - 0.5;
        limit += normal[j] * kept[j];
        at_center += normal[j] * ellipsoid.center()[j];
      }
      if (at_center < limit) continue;
      const double before = ellipsoid.log_volume();
      if (!ellipsoid.Cut(normal, limit)) continue;
      ++cuts;
      EXPECT_LT(ellipsoid.log_volume(), before - 1 / (2.0 * (dimensions + 1)) + 1e-9);
      EXPECT_TRUE(ellipsoid.Contains(kept));
    }
    EXPECT_GT(cuts, 20);
  }
}

TEST(Ellipsoid, HalfABallLiesInTheCutBall) {
  Ellipsoid ellipsoid({0, 0, 0}, 2);
  ASSERT_TRUE(ellipsoid.Cut({1.0, 0.0, 0.0}, -0.5));
  EXPECT_TRUE(ellipsoid.Contains({-2, 0, 0}));
  EXPECT_TRUE(ellipsoid.Contains({-0.5, std::sqrt(3.75), 0}));
  EXPECT_TRUE(ellipsoid.Contains({-0.5, 0, -std::sqrt(3.75)}));
  EXPECT_FALSE(ellipsoid.Contains({0.5, 0, 0}));
}

TEST(Ellipsoid, RefusesACutThatLeavesNothing) {
  Ellipsoid ellipsoid({0, 0}, 1);
  EXPECT_FALSE(ellipsoid.Cut({1.0, 0.0}, -1.5));
  EXPECT_EQ(ellipsoid.log_volume(), 0);
  EXPECT_EQ(ellipsoid.center(), (std::vector<double>{0, 0}));
}

TEST(ExactOracle, KnowsTheRatesThatFormulasGive) {
  EXPECT_EQ(AllTrees(4, {0, 1, 2, 3}, 2, TreeDirection::kReduce, Mesh(4, 4).edges).size(), 16u);
  // One root: as much as its least cut, its own links. All roots: n(n-1) links, n-1 per tree.
  EXPECT_NEAR(ExactRate(Mesh(4, 4), TreeDirection::kBroadcast, {0}), 3, 1e-6);
  EXPECT_NEAR(ExactRate(Mesh(4, 4), TreeDirection::kBroadcast, {0, 1, 2, 3}), 4, 1e-6);
  // One tree's bytes arrive at n-1 of the n workers.
  EXPECT_NEAR(ExactRate(Star(4, 4), TreeDirection::kReduce, {0, 1, 2, 3}), 4.0 / 3, 1e-6);
  // A perfect ring sends each byte out of each worker 2(n-1)/n times.
  EXPECT_NEAR(ExactForestSeconds(4, {0, 1, 2, 3}, Star(4, 4).capacities, Star(4, 4).edges), 1.5,
              1e-6);
  EXPECT_NEAR(ExactForestSeconds(4, {0, 1, 2, 3}, Mesh(4, 4).capacities, Mesh(4, 4).edges), 0.5,
              1e-6);
}

TEST(ExactOracle, RelaysHelpAndMissingEdgesMakeItImpossible) {
  // Two active workers, three links out of each: one direct, two through relays.
  const Network mesh = Mesh(4, 2);
  EXPECT_NEAR(ExactRate(mesh, TreeDirection::kBroadcast, {0}), 3, 1e-6);
  EXPECT_NEAR(ExactForestSeconds(4, mesh.active, mesh.capacities, mesh.edges), 1.0 / 3, 1e-6);
  Network cut = Mesh(3, 3);
  cut.edges[0 * 3 + 1].clear();
  cut.edges[0 * 3 + 2].clear();
  EXPECT_EQ(ExactForestSeconds(3, cut.active, cut.capacities, cut.edges),
            std::numeric_limits<double>::infinity());
}

void ExpectNearExact(const Network& network, double exact, bool roots_together) {
  for (const TreeDirection direction : {TreeDirection::kBroadcast, TreeDirection::kReduce}) {
    const EllipsoidTrees found =
        PackByEllipsoid(network.capacities, network.active, PricingFor(network, direction),
                        {.roots_together = roots_together});
    ASSERT_EQ(found.trees.size(), network.active.size());
    size_t count = 0;
    for (const auto& trees : found.trees) count += trees.size();
    const double rate = RateOf(found.trees, network, direction);
    EXPECT_GE(rate, 0.9 * exact);
    EXPECT_LE(rate, exact * (1 + 1e-6));
    ::testing::Test::RecordProperty(
        absl::StrCat("w", network.workers, "a", network.active.size(), "r",
                     network.capacities.size(), roots_together ? "together" : "single",
                     direction == TreeDirection::kReduce ? "reduce" : "broadcast"),
        absl::StrCat(rate / exact, " trees ", count, " steps ", found.steps, " pricings ",
                     found.pricings));
    if (roots_together) {
      EXPECT_GE(found.bounds[0], exact * (1 - 1e-9));
    }
  }
}

TEST(PackByEllipsoid, GetsNearTheOptimumOnMeshes) {
  for (const bool together : {false, true}) {
    for (const int workers : {4, 5, 6}) {
      SCOPED_TRACE(absl::StrCat(workers, " workers"));
      ExpectNearExact(Mesh(workers, workers), workers, together);
      ExpectNearExact(Mesh(workers, workers, 25e9), workers * 25e9, together);
    }
  }
}

TEST(PackByEllipsoid, GetsNearTheOptimumOnStars) {
  for (const bool together : {false, true}) {
    for (const int workers : {4, 5, 6}) {
      SCOPED_TRACE(absl::StrCat(workers, " workers"));
      ExpectNearExact(Star(workers, workers), static_cast<double>(workers) / (workers - 1),
                      together);
    }
  }
}

TEST(PackByEllipsoid, GetsNearTheOptimumWithRelaysAndUnequalLinks) {
  for (uint64_t seed = 0; seed < 4; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Random random(seed);
    Network network = seed % 2 == 0 ? Mesh(4, 3) : Star(5, 3);
    for (double& capacity : network.capacities) capacity = 0.5 + random.Unit();
    // Both directions have the same links, but not the same optimum.
    for (const TreeDirection direction : {TreeDirection::kBroadcast, TreeDirection::kReduce}) {
      const double exact = ExactRate(network, direction, network.active);
      const EllipsoidTrees found =
          PackByEllipsoid(network.capacities, network.active, PricingFor(network, direction), {});
      const double rate = RateOf(found.trees, network, direction);
      EXPECT_GE(rate, 0.9 * exact);
      EXPECT_LE(rate, exact * (1 + 1e-6));
      for (size_t i = 0; i < found.bounds.size(); ++i) {
        EXPECT_GE(found.bounds[i], ExactRate(network, direction, {network.active[i]}) - 1e-6);
      }
    }
  }
}

TEST(PackByEllipsoid, BoundOfOneRootClosesInOnItsRate) {
  const Network network = Mesh(4, 4);
  const EllipsoidTrees found =
      PackByEllipsoid(network.capacities, {1}, PricingFor(network, TreeDirection::kBroadcast),
                      {.iterations = 5000, .tolerance = 0.01});
  ASSERT_EQ(found.bounds.size(), 1u);
  EXPECT_GE(found.bounds[0], 3 - 1e-6);
  EXPECT_LE(found.bounds[0], 3.1);
}

TEST(PackByEllipsoid, TwoWorkersOneLink) {
  Network network{.workers = 2, .capacities = {5}, .edges = EdgeResources(4), .active = {0, 1}};
  network.edges[1] = {0};
  const EllipsoidTrees found = PackByEllipsoid(network.capacities, {0, 1},
                                               PricingFor(network, TreeDirection::kBroadcast), {});
  ASSERT_EQ(found.trees.size(), 2u);
  EXPECT_EQ(found.trees[0].size(), 1u);
  EXPECT_NEAR(found.bounds[0], 5, 0.1);
  EXPECT_TRUE(found.trees[1].empty()) << "there is no way out of worker 1";
  EXPECT_EQ(found.bounds[1], 0);
}

}  // namespace
}  // namespace syncopate::plan
