#include "plan/groups/choose.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/topology_makers.h"
#include "plan/groups/ds_sync.h"
#include "plan/groups/groups_testing.h"

namespace syncopate::plan {
namespace {

using ::testing::HasSubstr;

constexpr double kRackRate = 25e6;  // bytes/s
constexpr double kModelBytes = 1e6;
// S times the seconds of a byte, the unit of the formulas.
constexpr double kModelSeconds = kModelBytes / kRackRate;

// Racks around one switch, with NICs and uplinks of these rates (in parts of kRackRate) and no latency
// to speak of.
Topology RackTopology(const std::vector<std::vector<double>>& nics,
                      const std::vector<double>& uplinks) {
  Topology topology;
  const auto connect = [&](int a, int b, double rate) {
    for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)}) {
      Topology::Link link;
      link.id = topology.nodes[static_cast<size_t>(from)].id + ">" +
                topology.nodes[static_cast<size_t>(to)].id;
      link.from = from;
      link.to = to;
      link.bandwidth = rate * kRackRate;
      link.latency = 1e-9;
      topology.links.push_back(link);
    }
  };
  topology.nodes.push_back({"spine", NodeKind::kSwitch, -1, "", {}, 0});
  int device = 0;
  for (size_t r = 0; r < nics.size(); ++r) {
    const std::string rack = "rack" + std::to_string(r);
    const int hub = static_cast<int>(topology.nodes.size());
    topology.nodes.push_back({rack, NodeKind::kSwitch, -1, "", {}, 0});
    connect(hub, 0, uplinks[r]);
    for (const double nic : nics[r]) {
      const int node = static_cast<int>(topology.nodes.size());
      topology.nodes.push_back(
          {"w" + std::to_string(device++), NodeKind::kDevice, -1, rack, {}, 0});
      connect(node, hub, nic);
    }
  }
  EXPECT_EQ(std::string(Validate(topology).message()), "");
  return topology;
}

GroupNetwork RackNetwork(const Topology& topology) {
  const std::vector<int> devices = Devices(topology);
  absl::StatusOr<GroupNetwork> network = GroupNetwork::Of(topology, devices);
  EXPECT_EQ(std::string(network.status().message()), "");
  return *std::move(network);
}

GroupChoice ChooseOn(const GroupNetwork& network) {
  absl::StatusOr<GroupChoice> choice = ChooseDsSync(network, kModelBytes);
  EXPECT_EQ(std::string(choice.status().message()), "");
  return *std::move(choice);
}

TEST(GroupNetworkTest, FindsPlacesAndRates) {
  const GroupNetwork network = RackNetwork(RackTopology({{1, 1, 0.5}, {1, 1}}, {1, 0.25}));
  EXPECT_EQ(network.places().children.size(), 2u);
  EXPECT_TRUE(network.has_racks());
  ASSERT_EQ(network.uplinks().size(), 7u);
  EXPECT_EQ(network.uplinks()[0].name, "rack0");
  EXPECT_EQ(network.uplinks()[3].name, "w2");
  EXPECT_NEAR(network.uplinks()[3].seconds_per_byte, 2 / kRackRate, 1e-12);
  EXPECT_NEAR(network.uplinks()[1].seconds_per_byte, 1 / kRackRate, 1e-12);
  EXPECT_NEAR(network.uplinks()[4].seconds_per_byte, 4 / kRackRate, 1e-12);
  EXPECT_FALSE(RackNetwork(StarTopology(4, kRackRate, 1e-6)).has_racks());
}

TEST(GroupNetworkTest, TakesWhatTheFormulasSay) {
  const GroupNetwork network = RackNetwork(RackTopology({{1, 1, 1, 1}, {1, 1, 1, 1}}, {1, 1}));
  EXPECT_NEAR(network.RoundSeconds({{0, 4}, {1, 2, 3}, {5, 6, 7}}, kModelBytes),
              4. / 3 * kModelSeconds, 1e-6);
  EXPECT_NEAR(network.RoundSeconds({{0, 4}, {1, 5}, {2, 6}, {3, 7}}, kModelBytes),
              4 * kModelSeconds, 1e-6);
  EXPECT_NEAR(network.RoundSeconds({{0, 1, 2, 3, 4, 5, 6, 7}}, kModelBytes), 1.75 * kModelSeconds,
              1e-6);
  const std::vector<double> loads =
      network.UplinkBytes({{0, 4}, {1, 2, 3}, {5, 6, 7}}, kModelBytes);
  EXPECT_NEAR(loads[0], kModelBytes, 1);           // rack0: a pair
  EXPECT_NEAR(loads[1], kModelBytes, 1);           // worker 0
  EXPECT_NEAR(loads[2], 4. / 3 * kModelBytes, 1);  // worker 1
}

TEST(ChooseDsSyncTest, NothingSlowIsStatic) {
  const GroupChoice choice =
      ChooseOn(RackNetwork(RackTopology({{1, 1, 1, 1}, {1, 1, 1, 1}}, {1, 1})));
  EXPECT_EQ(choice.candidates.size(), 1u);
  EXPECT_EQ(choice.winner().name, "nothing kept apart");
  EXPECT_NEAR(choice.winner().longest_seconds, 4. / 3 * kModelSeconds, 1e-6);
  EXPECT_THAT(choice.why, HasSubstr("no uplink is so slow"));
}

TEST(ChooseDsSyncTest, ASlowHostIsKeptInPairs) {
  const GroupChoice choice =
      ChooseOn(RackNetwork(RackTopology({{1, 1, 1, 0.5}, {1, 1, 1, 1}}, {1, 1})));
  EXPECT_EQ(choice.winner().name, "w3 in pairs");
  EXPECT_NEAR(choice.winner().longest_seconds, 2 * kModelSeconds, 1e-6);
  EXPECT_NEAR(choice.winner().consensus.variance, 0.694, 1e-3);
}

// As the numbers of the rules have it: 1.0 and V 1.06 in pairs, 1.33 and V .43 whole.
TEST(ChooseDsSyncTest, OneSlowUplinkOfThreeStaysWhole) {
  const std::vector<double> rack(4, 1);
  const GroupChoice choice = ChooseOn(RackNetwork(RackTopology({rack, rack, rack}, {0.5, 1, 1})));
  EXPECT_EQ(choice.winner().name, "nothing kept apart");
  ASSERT_GE(choice.candidates.size(), 2u);
  EXPECT_THAT(choice.candidates[1].name, HasSubstr("rack0 in pairs"));
  EXPECT_THAT(choice.candidates[1].against, HasSubstr("(1 + V) rise"));
}

TEST(ChooseDsSyncTest, ASlightlySlowHostIsRegular) {
  const GroupChoice choice =
      ChooseOn(RackNetwork(RackTopology({{1, 1, 1, 0.97}, {1, 1, 1, 1}}, {1, 1})));
  EXPECT_EQ(choice.winner().name, "nothing kept apart");
}

// Whatever the network, what a search finds is worse in neither.
TEST(OptimizeGroupsTest, IsNeverWorse) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    Random random(seed);
    std::vector<std::vector<double>> nics(random.Below(3) + 2);
    std::vector<double> uplinks;
    for (std::vector<double>& rack : nics) {
      rack.resize(random.Below(4) + 1);
      for (double& nic : rack) nic = random.Below(5) == 0 ? 0.5 : 1;
      uplinks.push_back(random.Below(3) == 0 ? 0.5 : 2);
    }
    const GroupNetwork network = RackNetwork(RackTopology(nics, uplinks));
    GroupChoice choice = ChooseOn(network);
    const GroupCandidate rules = choice.winner();
    ASSERT_TRUE(OptimizeGroups(network, kModelBytes, 200, choice).ok()) << seed;
    EXPECT_LE(choice.winner().mean_seconds, rules.mean_seconds * (1 + 1e-9)) << seed;
    EXPECT_LE(choice.winner().consensus.variance, rules.consensus.variance * (1 + 1e-6) + 1e-9)
        << seed;
    EXPECT_TRUE(Validate(choice.winner().pattern).ok()) << seed;
  }
}

// 63 idle rounds and one average of all take next to no time a round, and lambda is 0.
TEST(OptimizeGroupsTest, ARareWorldAverageDoesNotWin) {
  const GroupNetwork network = RackNetwork(RackTopology({{1, 1, 1, 1}, {1, 1, 1, 1}}, {1, 1}));
  GroupChoice choice = ChooseOn(network);
  const double rules_variance = choice.winner().consensus.variance;
  ASSERT_TRUE(OptimizeGroups(network, kModelBytes, 1500, choice).ok());
  EXPECT_LE(choice.winner().consensus.variance, rules_variance * (1 + 1e-6));
  for (const Pattern::Round& round : choice.winner().pattern.rounds) {
    EXPECT_LT(round.size(), 8u) << "a round in which nobody averages";
  }
}

// Where uplinks are twenty times as quick as NICs, groups need not keep to their racks.
TEST(OptimizeGroupsTest, FindsSomethingQuicker) {
  const GroupNetwork network = RackNetwork(RackTopology({{1, 1, 1, 1, 1}, {1, 1, 1, 1}}, {20, 20}));
  GroupChoice choice = ChooseOn(network);
  const double rules_seconds = choice.winner().mean_seconds;
  ASSERT_TRUE(OptimizeGroups(network, kModelBytes, 3000, choice).ok());
  EXPECT_LT(choice.winner().mean_seconds, rules_seconds);
}

}  // namespace
}  // namespace syncopate::plan
