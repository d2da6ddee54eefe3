#include "plan/collective/locality.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/topology_makers.h"

namespace syncopate::plan {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Devices with the given groups and hosts; host "" is none.
Topology Places(const std::vector<std::pair<std::string, std::string>>& places) {
  Topology topology;
  for (const auto& [group, host] : places) {
    Topology::Node device;
    device.id = "d" + std::to_string(topology.nodes.size());
    device.group = group;
    topology.nodes.push_back(device);
  }
  for (size_t i = 0; i < places.size(); ++i) {
    if (places[i].second.empty()) continue;
    absl::StatusOr<int> host = FindNode(topology, places[i].second);
    if (!host.ok()) {
      Topology::Node node;
      node.id = places[i].second;
      node.kind = NodeKind::kHost;
      topology.nodes.push_back(node);
      host = static_cast<int>(topology.nodes.size()) - 1;
    }
    topology.nodes[i].host = *host;
  }
  return topology;
}

std::vector<int> Range(int n) {
  std::vector<int> all;
  for (int i = 0; i < n; ++i) all.push_back(i);
  return all;
}

TEST(LocalityTest, LevelsFromHostsToPods) {
  const Topology topology = Places({{"p0/r0", "h0"},
                                    {"p0/r0", "h0"},
                                    {"p0/r1", "h1"},
                                    {"p0/r1", "h1"},
                                    {"p1/r0", "h2"},
                                    {"p1/r0", "h3"}});
  const std::vector<int> all = Range(6);
  EXPECT_THAT(
      LevelsOf(topology, all, all),
      ElementsAre(ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3), ElementsAre(4), ElementsAre(5)),
                  ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3), ElementsAre(4, 5)),
                  ElementsAre(ElementsAre(0, 1, 2, 3), ElementsAre(4, 5))));
  // Of the workers that take part only.
  EXPECT_THAT(LevelsOf(topology, all, {0, 2, 4}),
              ElementsAre(ElementsAre(ElementsAre(0, 2), ElementsAre(4))));
}

TEST(LocalityTest, LevelsThatSayNothingAreLeftOut) {
  EXPECT_THAT(LevelsOf(Places({{"", ""}, {"", ""}, {"", ""}}), Range(3), Range(3)), IsEmpty());
  EXPECT_THAT(LevelsOf(Places({{"", "h"}, {"", "h"}, {"", "h"}}), Range(3), Range(3)), IsEmpty());
  EXPECT_THAT(LevelsOf(Places({{"a", ""}, {"b", ""}}), Range(2), Range(2)), IsEmpty());
}

TEST(LocalityTest, WhoseIsUnknownStandsAlone) {
  EXPECT_THAT(LevelsOf(Places({{"", ""}, {"r", ""}, {"r", ""}, {"", ""}}), Range(4), Range(4)),
              ElementsAre(ElementsAre(ElementsAre(0), ElementsAre(1, 2), ElementsAre(3))));
}

TEST(LocalityTest, OrderKeepsNeighboursTogetherAndRanksAscending) {
  const Topology topology = Places({{"z", ""}, {"a", ""}, {"z", ""}, {"a", ""}, {"", ""}});
  EXPECT_THAT(OrderByPlace(topology, Range(5), Range(5)), ElementsAre(0, 2, 1, 3, 4));
  EXPECT_THAT(OrderByPlace(topology, Range(5), {1, 2, 3}), ElementsAre(1, 3, 2));
  const Topology racks = TwoRackTopology(3, 1e9, 1e9, 1e-5);
  EXPECT_THAT(OrderByPlace(racks, Devices(racks), Range(6)), ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST(LocalityTest, PlacementDecidesNotRank) {
  const Topology racks = TwoRackTopology(2, 1e9, 1e9, 1e-5);
  const std::vector<int> devices = Devices(racks);
  const std::vector<int> placement = {devices[0], devices[2], devices[1], devices[3]};
  EXPECT_THAT(OrderByPlace(racks, placement, Range(4)), ElementsAre(0, 2, 1, 3));
  EXPECT_THAT(LevelsOf(racks, placement, Range(4)),
              ElementsAre(ElementsAre(ElementsAre(0, 2), ElementsAre(1, 3))));
}

}  // namespace
}  // namespace syncopate::plan
