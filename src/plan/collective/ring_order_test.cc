#include "plan/collective/ring_order.h"

#include <algorithm>
#include <numeric>

#include "base/random.h"
#include "gtest/gtest.h"
#include "model/topology_makers.h"
#include "plan/collective/locality.h"

namespace syncopate::plan {
namespace {

std::vector<int> AllOf(int workers) {
  std::vector<int> ranks(static_cast<size_t>(workers));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

double SecondsOf(const Topology& topology, const std::vector<int>& placement,
                 const std::vector<int>& order) {
  return *RingSecondsPerByte(topology, placement, order);
}

TEST(RingOrderTest, SecondsAreThoseOfTheWorstResource) {
  const Topology racks = TwoRackTopology(2, 1e9, 1e8, 1e-5);
  const std::vector<int> placement = *PlaceInOrder(racks, 4);
  EXPECT_DOUBLE_EQ(SecondsOf(racks, placement, {0, 1, 2, 3}), 1e-8);
  EXPECT_DOUBLE_EQ(SecondsOf(racks, placement, {0, 2, 1, 3}), 2e-8);  // the uplink is used twice
  EXPECT_DOUBLE_EQ(SecondsOf(racks, placement, {0, 1}), 1e-9);
  EXPECT_DOUBLE_EQ(SecondsOf(racks, placement, {0}), 0);
}

// Every order of up to seven workers is tried one by one.
TEST(RingOrderTest, IsTheBestOfAllOrders) {
  int better_than_by_place = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Random random(seed);
    const int workers = static_cast<int>(random.Between(3, 7));
    const Topology topology = RandomTopology(workers + 2, seed);
    const std::vector<int> placement = *PlaceInOrder(topology, workers + 2);
    std::vector<int> active = AllOf(workers + 2);
    for (int i = 0; i < 2; ++i) {
      active.erase(active.begin() + static_cast<ptrdiff_t>(random.Below(active.size())));
    }
    const std::vector<int> order = *BestRingOrder(topology, placement, active);
    ASSERT_TRUE(std::is_permutation(order.begin(), order.end(), active.begin(), active.end()));
    EXPECT_EQ(order[0], active[0]);
    const double found = SecondsOf(topology, placement, order);
    std::vector<int> any = active;
    double best = found;
    do {
      best = std::min(best, SecondsOf(topology, placement, any));
    } while (std::next_permutation(any.begin() + 1, any.end()));
    EXPECT_LE(found, best * (1 + 1e-6));
    const double by_place =
        SecondsOf(topology, placement, OrderByPlace(topology, placement, active));
    EXPECT_LE(found, by_place);
    better_than_by_place += found < 0.99 * by_place;
  }
  EXPECT_GT(better_than_by_place, 3);
}

// A ring of fast links is hidden among slow ones, in an order that nothing but the links tells.
TEST(RingOrderTest, FindsAHiddenRingOfManyWorkers) {
  constexpr int kWorkers = 24;
  Topology mesh = MeshTopology(kWorkers, 1e8, 1e-5);
  const std::vector<int> devices = Devices(mesh);
  for (Topology::Link& link : mesh.links) {
    const long from = std::find(devices.begin(), devices.end(), link.from) - devices.begin();
    const long to = std::find(devices.begin(), devices.end(), link.to) - devices.begin();
    if (to == (from + 7) % kWorkers || from == (to + 7) % kWorkers) link.bandwidth = 1e9;
  }
  const std::vector<int> placement = *PlaceInOrder(mesh, kWorkers);
  const std::vector<int> order = *BestRingOrder(mesh, placement, AllOf(kWorkers));
  EXPECT_DOUBLE_EQ(SecondsOf(mesh, placement, order), 1e-9);
}

TEST(RingOrderTest, NeverWorseThanByPlaceAndAlwaysTheSame) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const int workers = 9 + static_cast<int>(seed);
    const Topology topology = RandomTopology(workers, seed);
    const std::vector<int> placement = *PlaceInOrder(topology, workers);
    const std::vector<int> active = AllOf(workers);
    const std::vector<int> order = *BestRingOrder(topology, placement, active);
    EXPECT_TRUE(std::is_permutation(order.begin(), order.end(), active.begin(), active.end()));
    EXPECT_LE(
        SecondsOf(topology, placement, order),
        SecondsOf(topology, placement, OrderByPlace(topology, placement, active)) * (1 + 1e-9));
    EXPECT_EQ(*BestRingOrder(topology, placement, active), order);
  }
}

TEST(RingOrderTest, FewWorkers) {
  const Topology star = StarTopology(3, 1e9, 1e-5);
  const std::vector<int> placement = *PlaceInOrder(star, 3);
  EXPECT_EQ(*BestRingOrder(star, placement, {1}), std::vector<int>{1});
  EXPECT_EQ(*BestRingOrder(star, placement, {0, 2}), (std::vector<int>{0, 2}));
}

}  // namespace
}  // namespace syncopate::plan
