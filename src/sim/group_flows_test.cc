// What groups ask of a network: by where their members are, and what transfers in virtual time make of it.
#include "sim/group_flows.h"

#include <map>
#include <memory>
#include <numeric>
#include <vector>

#include "gtest/gtest.h"
#include "model/topology_makers.h"
#include "sim/fluid_bandwidth.h"

namespace syncopate::sim {
namespace {

constexpr int kWorkers = 8;
constexpr uint64_t kLarge = 64 << 20;  // bytes

Members Group(std::vector<int> ranks) {
  return std::make_shared<const MemberList>(std::move(ranks));
}

// Four hosts a rack, and an uplink with a tenth of a host's bandwidth.
std::unique_ptr<GroupFlows> TwoRacks() {
  auto topology = std::make_shared<const Topology>(TwoRackTopology(4, 1e9, 1e8, 50e-6));
  const std::vector<int> placement = *PlaceInOrder(*topology, kWorkers);
  return std::make_unique<GroupFlows>(topology, placement, 1 << 20);
}

TEST(GroupFlowsTest, AGroupIsPricedByItsOwnMembers) {
  const auto flows = TwoRacks();
  const auto inside = flows->OfAverage(Group({0, 1}), kLarge),
             across = flows->OfAverage(Group({0, 4}), kLarge),
             four = flows->OfAverage(Group({0, 1, 2, 3}), kLarge),
             alone = flows->OfAverage(Group({5}), kLarge);
  ASSERT_TRUE(inside.ok() && across.ok() && four.ok() && alone.ok());
  // Two workers send each other all that they have, at 1 GB/s or through the uplink.
  EXPECT_NEAR((*inside)->b, 1e-9, 0.2e-9);
  EXPECT_NEAR((*across)->b, 1e-8, 0.2e-8);
  EXPECT_GT((*four)->b, (*inside)->b);
  EXPECT_GT((*four)->a, (*inside)->a);
  EXPECT_EQ((*alone)->a, 0);
  EXPECT_EQ((*alone)->b, 0);
  EXPECT_EQ(flows->OfAverage(Group({0, kWorkers}), kLarge).status().code(),
            absl::StatusCode::kInvalidArgument);
}

// A small average runs another program than a large one, so its start-up is another one, too.
TEST(GroupFlowsTest, ASizeClassHasItsOwnLine) {
  const auto flows = TwoRacks();
  const auto small = flows->OfAverage(Group({0, 1, 2, 3}), 1 << 10),
             also_small = flows->OfAverage(Group({0, 1, 2, 3}), 100),
             large = flows->OfAverage(Group({0, 1, 2, 3}), kLarge);
  ASSERT_TRUE(small.ok() && also_small.ok() && large.ok());
  EXPECT_EQ(*small, *also_small);
  EXPECT_NE(*small, *large);
  EXPECT_EQ(flows->priced(), 2u);
  EXPECT_NE((*small)->a, (*large)->a);
}

// A plan of all workers is for large averages. Below its line, small ones take what few messages take.
TEST(GroupFlowsTest, SmallAveragesOfAllDoNotTakeTheirPlan) {
  auto topology = std::make_shared<const Topology>(TwoRackTopology(4, 1e9, 1e8, 50e-6));
  const std::vector<int> placement = *PlaceInOrder(*topology, kWorkers);
  const std::vector<int> ranks = {0, 1, 2, 3, 4, 5, 6, 7};
  auto planned = std::make_shared<PlannedAverage>();
  planned->program.workers = kWorkers;
  planned->program.data_bounds = {0, kPricedElementsLarge};
  planned->program.steps.resize(kWorkers);
  planned->costs.a = 123;
  GroupFlows flows(topology, placement, 1 << 20, planned);
  const auto large = flows.OfAverage(Group(ranks), kLarge),
             small = flows.OfAverage(Group(ranks), 1 << 10);
  ASSERT_TRUE(large.ok() && small.ok()) << large.status() << small.status();
  EXPECT_EQ((*large)->a, 123);
  EXPECT_LT((*small)->a, 0.1);
  EXPECT_GT((*small)->a, 0);
}

TEST(GroupFlowsTest, GroupsInLikePlacesArePricedOnce) {
  const auto flows = TwoRacks();
  for (int a = 0; a < kWorkers; ++a) {
    for (int b = a + 1; b < kWorkers; ++b)
      ASSERT_TRUE(flows->OfAverage(Group({a, b}), kLarge).ok());
  }
  EXPECT_EQ(flows->priced(), 2u);  // both in one rack, whichever, or one in each
}

// Priced once, and yet each on its own links: a byte of two workers crosses each of their NICs once each
// way.
TEST(GroupFlowsTest, GroupsInLikePlacesUseTheirOwnLinks) {
  const auto topology = std::make_shared<const Topology>(StarTopology(6, 1e9, 50e-6));
  GroupFlows flows(topology, *PlaceInOrder(*topology, 6), 1 << 20);
  for (const std::vector<int>& pair : {std::vector<int>{0, 1}, {4, 5}}) {
    const auto flow = flows.OfAverage(Group(pair), kLarge);
    ASSERT_TRUE(flow.ok()) << flow.status();
    std::map<int, double> bytes;  // by node
    for (const auto& [link, count] : (*flow)->link_bytes) {
      bytes[topology->links[static_cast<size_t>(link)].from] += count;
      bytes[topology->links[static_cast<size_t>(link)].to] += count;
    }
    const std::vector<int> devices = Devices(*topology);
    for (int rank = 0; rank < 6; ++rank) {
      const bool member = rank == pair[0] || rank == pair[1];
      EXPECT_NEAR(bytes[devices[static_cast<size_t>(rank)]], member ? 2 : 0, 1e-9);
    }
  }
  EXPECT_EQ(flows.priced(), 1u);
}

TEST(GroupFlowsTest, VeryManyWorkersArePricedQuickly) {
  const int workers = 512;
  auto topology = std::make_shared<const Topology>(StarTopology(workers, 1e9, 50e-6));
  GroupFlows flows(topology, *PlaceInOrder(*topology, workers), 1 << 20);
  std::vector<int> most(static_cast<size_t>(workers) - 1);
  std::iota(most.begin(), most.end(), 0);
  const auto flow = flows.OfAverage(Group(most), kLarge);
  ASSERT_TRUE(flow.ok()) << flow.status();
  EXPECT_NEAR((*flow)->b, 3e-9, 1.5e-9);  // each sends its data two to three times
}

TEST(GroupFlowsTest, ASendTakesTheNarrowestPlaceOfItsWay) {
  const auto flows = TwoRacks();
  const auto inside = flows->OfSends({0}, 1), across = flows->OfSends({0}, 5),
             both = flows->OfSends({0, 1}, 5), itself = flows->OfSends({3}, 3);
  ASSERT_TRUE(inside.ok() && across.ok() && both.ok() && itself.ok());
  EXPECT_NEAR((*inside)->a, 50e-6, 1e-9);
  EXPECT_NEAR((*inside)->b, 1e-9, 1e-15);
  EXPECT_NEAR((*across)->b, 1e-8, 1e-15);
  EXPECT_NEAR((*both)->b, 2e-8, 1e-15);
  EXPECT_EQ((*itself)->b, 0);
}

// Alone an average takes its line. Beside one that shares the uplink each takes twice as long; one that
// shares nothing is not slowed.
TEST(FluidBandwidthTest, TransfersShareTheLinksThatTheyUse) {
  const auto seconds = [](const std::vector<std::vector<int>>& groups) {
    FluidBandwidth bandwidth(TwoRacks());
    std::vector<double> ends(groups.size(), 0);
    for (size_t i = 0; i < groups.size(); ++i) {
      EXPECT_TRUE(bandwidth
                      .Add(static_cast<int>(i),
                           {.members = Group(groups[i]), .from = {}, .bytes = 10'000'000})
                      .ok());
      bandwidth.Begin(0, static_cast<int>(i));
    }
    for (size_t left = groups.size(); left > 0;) {
      const double now = bandwidth.NextEnd();
      for (const int ended : bandwidth.TakeEnded(now)) {
        ends[static_cast<size_t>(ended)] = now;
        --left;
      }
    }
    return ends;
  };
  const auto flow = TwoRacks()->OfAverage(Group({0, 4}), kLarge);
  ASSERT_TRUE(flow.ok());
  const double alone = seconds({{0, 4}})[0];
  EXPECT_NEAR(alone, (*flow)->b * 1e7, 1e-9);
  const std::vector<double> both = seconds({{0, 4}, {1, 5}, {2, 3}});
  EXPECT_NEAR(both[0], 2 * alone, 0.1 * alone);
  EXPECT_NEAR(both[1], 2 * alone, 0.1 * alone);
  EXPECT_NEAR(both[2], seconds({{2, 3}})[0], 1e-9);
}

}  // namespace
}  // namespace syncopate::sim
