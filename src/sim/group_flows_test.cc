// Prices of groups: by where their members are, and what transfers in virtual time make of them.
#include "sim/group_prices.h"

#include <memory>
#include <numeric>
#include <vector>

#include "gtest/gtest.h"
#include "model/tensor_table.h"
#include "model/topology_makers.h"
#include "sim/virtual_transfers.h"

namespace syncopate::sim {
namespace {

constexpr int kWorkers = 8;

// Four hosts a rack, and an uplink with a tenth of a host's bandwidth.
GroupPrices TwoRacks() {
  auto topology = std::make_shared<const Topology>(TwoRackTopology(4, 1e9, 1e8, 50e-6));
  const std::vector<int> placement = *PlaceInOrder(*topology, kWorkers);
  return GroupPrices(topology, placement);
}

TEST(GroupPricesTest, AGroupIsPricedByItsOwnMembers) {
  GroupPrices prices = TwoRacks();
  const auto inside = prices.Of({0, 1}), across = prices.Of({0, 4}), four = prices.Of({0, 1, 2, 3}),
             alone = prices.Of({5});
  ASSERT_TRUE(inside.ok() && across.ok() && four.ok() && alone.ok());
  // Two workers send each other all that they have, at 1 GB/s or through the uplink.
  EXPECT_NEAR(inside->b, 1e-9, 0.2e-9);
  EXPECT_NEAR(across->b, 1e-8, 0.2e-8);
  EXPECT_GT(four->b, inside->b);
  EXPECT_GT(four->a, inside->a);
  EXPECT_EQ(alone->a, 0);
  EXPECT_EQ(alone->b, 0);
  EXPECT_EQ(prices.Of({0, kWorkers}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(GroupPricesTest, GroupsInLikePlacesArePricedOnce) {
  GroupPrices prices = TwoRacks();
  for (int a = 0; a < kWorkers; ++a) {
    for (int b = a + 1; b < kWorkers; ++b) ASSERT_TRUE(prices.Of({a, b}).ok());
  }
  EXPECT_EQ(prices.priced(), 3u);  // both in the first rack, both in the second, one in each
}

TEST(GroupPricesTest, VeryManyWorkersArePricedQuickly) {
  const int workers = 512;
  auto topology = std::make_shared<const Topology>(StarTopology(workers, 1e9, 50e-6));
  GroupPrices prices(topology, *PlaceInOrder(*topology, workers));
  std::vector<int> most(static_cast<size_t>(workers) - 1);
  std::iota(most.begin(), most.end(), 0);
  const auto costs = prices.Of(most);
  ASSERT_TRUE(costs.ok()) << costs.status();
  EXPECT_NEAR(costs->b, 3e-9, 1.5e-9);  // each sends its data two to three times
}

TEST(GroupPricesTest, TransfersCostWhatTheirMembersDo) {
  const TensorTable table{.model = "test", .tensors = {{.name = "t", .elements = 250}}};
  VirtualTransfers transfers(table, {.a = 100, .b = 100, .gamma = {1}, .source = ""},
                             [](const std::vector<int>& members) {
                               cost::CommunicationCosts costs;
                               costs.a = members.front() == 0 ? 1 : 4;
                               costs.b = 0.001;
                               return absl::StatusOr<cost::CommunicationCosts>(costs);
                             });
  const auto start = [&](int64_t id, const std::vector<int>& members) {
    for (const int rank : members) {
      const strategy::StartTransfer command{.transfer = id, .first = 0, .last = 0};
      ASSERT_TRUE(transfers.Start(0, rank, 0, command, members, [](int) { return 1.0; }).ok());
    }
  };
  start(1, {0, 1});
  start(2, {2, 3});
  EXPECT_EQ(transfers.NextEnd(0), 1);  // the first one's start-up
  transfers.Advance(0, 1);
  EXPECT_EQ(transfers.NextEnd(1), 2);  // its thousand bytes
  transfers.Advance(1, 2);
  ASSERT_EQ(transfers.TakeEnded().size(), 1u);
  EXPECT_EQ(transfers.NextEnd(2), 4);
}

}  // namespace
}  // namespace syncopate::sim
