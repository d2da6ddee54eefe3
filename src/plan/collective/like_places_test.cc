// Like places: what stands for a placement is as good as the placement itself, and groups in like places
// have the same one.
#include "plan/collective/like_places.h"

#include <algorithm>
#include <set>
#include <vector>

#include "base/random.h"
#include "cost/program_cost.h"
#include "gtest/gtest.h"
#include "model/topology_makers.h"
#include "plan/collective/planners.h"

namespace syncopate::plan {
namespace {

std::vector<int> Draw(const std::vector<int>& devices, size_t count, Random& random) {
  std::vector<int> drawn = devices;
  for (size_t i = 0; i < count; ++i) std::swap(drawn[i], drawn[i + random.Below(drawn.size() - i)]);
  drawn.resize(count);
  return drawn;
}

TEST(LikePlacesTest, AllGroupsOfAStarAreAlike) {
  const Topology star = StarTopology(16, 1e9, 1e-5);
  const LikePlaces places(star);
  const std::vector<int> devices = Devices(star);
  Random random(1);
  for (size_t size = 2; size <= 8; ++size) {
    std::set<std::vector<int>> different;
    for (int i = 0; i < 50; ++i) different.insert(places.Canonical(Draw(devices, size, random)));
    EXPECT_EQ(different.size(), 1u) << size;
  }
}

TEST(LikePlacesTest, RacksAreNotMixedUp) {
  const Topology racks = TwoRackTopology(4, 1e9, 2e8, 1e-5);
  const LikePlaces places(racks);
  const std::vector<int> d = Devices(racks);
  // Within a rack any three are like any other three; two and one are not.
  EXPECT_EQ(places.Canonical({{d[0], d[1], d[2]}}), places.Canonical({{d[3], d[0], d[1]}}));
  EXPECT_NE(places.Canonical({{d[0], d[1], d[2]}}), places.Canonical({{d[0], d[1], d[4]}}));
  EXPECT_EQ(places.Canonical({{d[0], d[1], d[4]}}), places.Canonical({{d[2], d[3], d[7]}}));
  // Two workers on one device stay there.
  const std::vector<int> twice = places.Canonical({{d[3], d[5], d[3]}});
  EXPECT_EQ(twice[0], twice[2]);
  EXPECT_NE(twice[0], twice[1]);
}

TEST(LikePlacesTest, DevicesWithOtherRatesAreUnlike) {
  Topology star = StarTopology(4, 1e9, 1e-5);
  star.links.front().bandwidth /= 2;
  const LikePlaces places(star);
  const std::vector<int> d = Devices(star);
  std::set<std::vector<int>> pairs;
  for (const int a : d) {
    for (const int b : d) {
      if (a != b) pairs.insert(places.Canonical({{a, b}}));
    }
  }
  EXPECT_EQ(pairs.size(), 3u) << "the slow one first, second, or not at all";
}

// A program takes as long where it is planned for as where it runs, on any topology.
TEST(LikePlacesTest, WhatStandsForAPlacementCostsTheSame) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    const int count = static_cast<int>(random.Between(2, 10));
    const Topology topology = RandomTopology(count, seed);
    const std::vector<int> devices = Devices(topology);
    const LikePlaces places(topology);
    const std::vector<int> placement =
        Draw(devices, static_cast<size_t>(random.Between(1, count)), random);
    const std::vector<int> canonical = places.Canonical(placement);
    ASSERT_EQ(places.Canonical(canonical), canonical) << "seed " << seed;
    CollectiveRequest request = {.collective = Collective::kAllReduce,
                                 .workers = static_cast<int>(placement.size()),
                                 .active = {},
                                 .elements = 10'000,
                                 .block_elements = {}};
    for (int rank = 0; rank < request.workers; ++rank) request.active.push_back(rank);
    for (const char* algorithm : {"ring", "double-tree"}) {
      const absl::StatusOr<Program> program = PlanBy(algorithm, request);
      ASSERT_TRUE(program.ok());
      const auto here = cost::CostOf(*program, topology, placement, 4);
      const auto there = cost::CostOf(*program, topology, canonical, 4);
      ASSERT_TRUE(here.ok() && there.ok());
      EXPECT_NEAR(here->seconds, there->seconds, 1e-9 * here->seconds) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace syncopate::plan
