#include "plan/forest/paper_topologies.h"

#include <limits>
#include <map>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/topology_routes.h"

namespace syncopate::plan {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Topology Build(const PaperCluster& cluster) {
  absl::StatusOr<Topology> topology = PaperTopology(cluster);
  EXPECT_TRUE(topology.ok()) << topology.status();
  return topology.ok() ? *std::move(topology) : Topology();
}

std::vector<std::string> LinksBetween(const Topology& topology, absl::string_view from,
                                      absl::string_view to) {
  Routes routes(topology);
  std::vector<std::string> ids;
  const absl::StatusOr<std::vector<int>> links =
      routes.Between(*FindNode(topology, from), *FindNode(topology, to));
  for (const int link : *links) {
    ids.push_back(topology.links[static_cast<size_t>(link)].id);
  }
  return ids;
}

TEST(PaperTopologiesTest, AllAreValid) {
  for (const int machines : {1, 2, 4, 8}) {
    for (const int gpus : {1, 2, 4, 8}) {
      for (const BetweenNetwork between : {BetweenNetwork::kGpuPairs, BetweenNetwork::kMachinePairs,
                                           BetweenNetwork::kSharedNics}) {
        for (const bool switches : {false, true}) {
          PaperCluster cluster = MakePaperCluster(machines, gpus, between, 25);
          if (switches) cluster.inside = InsideNetwork::kSwitches;
          const Topology topology = Build(cluster);
          EXPECT_EQ(Validate(topology), absl::OkStatus()) << topology.source;
          EXPECT_EQ(Devices(topology).size(), static_cast<size_t>(machines * gpus));
        }
      }
    }
  }
}

TEST(PaperTopologiesTest, RatesAreThoseOfTheText) {
  const Topology four = Build(MakePaperCluster(2, 4, BetweenNetwork::kGpuPairs, 10));
  const Topology eight = Build(MakePaperCluster(2, 8, BetweenNetwork::kGpuPairs, 40));
  std::map<double, int> links;
  for (const Topology::Link& link : four.links) ++links[link.bandwidth];
  EXPECT_EQ(links, (std::map<double, int>{{1.25e9, 2 * 16}, {12.5e9, 2 * 12}}));
  links.clear();
  for (const Topology::Link& link : eight.links) ++links[link.bandwidth];
  EXPECT_EQ(links, (std::map<double, int>{{5e9, 2 * 64}, {37.5e9, 2 * 32}}));
}

TEST(PaperTopologiesTest, WhoSharesWhatBetweenMachines) {
  for (const BetweenNetwork between :
       {BetweenNetwork::kGpuPairs, BetweenNetwork::kMachinePairs, BetweenNetwork::kSharedNics}) {
    const Topology topology = Build(MakePaperCluster(4, 4, between, 10));
    const std::vector<std::string> ids = LinksBetween(topology, "m1.B", "m3.D");
    ASSERT_THAT(ids, ElementsAre("m1.B>m3.D"));
    std::vector<std::string> capacities;
    for (const Topology::Link& link : topology.links) {
      if (link.id != ids[0]) continue;
      for (const int index : link.capacities) {
        const Topology::Capacity& capacity = topology.capacities[static_cast<size_t>(index)];
        EXPECT_EQ(capacity.bandwidth, 1.25e9);
        capacities.push_back(capacity.id);
      }
    }
    std::vector<std::string> expected;
    if (between == BetweenNetwork::kMachinePairs) expected = {"m1>m3"};
    if (between == BetweenNetwork::kSharedNics) expected = {"m1.out", "m3.in"};
    EXPECT_EQ(capacities, expected) << Name(between);
  }
}

TEST(PaperTopologiesTest, CubeMesh) {
  const Topology topology = Build(MakePaperCluster(1, 8, BetweenNetwork::kGpuPairs, 10));
  EXPECT_THAT(LinksBetween(topology, "m0.A", "m0.D"), ElementsAre("m0.A>m0.D"));
  EXPECT_THAT(LinksBetween(topology, "m0.C", "m0.G"), ElementsAre("m0.C>m0.G"));
  EXPECT_THAT(LinksBetween(topology, "m0.A", "m0.G"), ElementsAre("m0.A>m0.E", "m0.E>m0.G"));
  EXPECT_THAT(LinksBetween(topology, "m0.A", "m0.F"), ElementsAre("m0.A>m0.B", "m0.B>m0.F"));
  // Where all send to all, every link carries two or three messages.
  std::map<std::string, int> load;
  for (char from = 'A'; from <= 'H'; ++from) {
    for (char to = 'A'; to <= 'H'; ++to) {
      if (from == to) continue;
      for (const std::string& id :
           LinksBetween(topology, std::string("m0.") + from, std::string("m0.") + to)) {
        ++load[id];
      }
    }
  }
  EXPECT_EQ(load.size(), 32u);
  for (const auto& [id, messages] : load) {
    EXPECT_GE(messages, 2) << id;
    EXPECT_LE(messages, 4) << id;
  }
}

TEST(PaperTopologiesTest, Switches) {
  PaperCluster cluster = MakePaperCluster(2, 4, BetweenNetwork::kMachinePairs, 10);
  cluster.inside = InsideNetwork::kSwitches;
  const Topology topology = Build(cluster);
  EXPECT_THAT(LinksBetween(topology, "m0.A", "m0.B"),
              ElementsAre("m0.A>m0.pcie0", "m0.pcie0>m0.B"));
  EXPECT_THAT(LinksBetween(topology, "m0.A", "m0.C"),
              ElementsAre("m0.A>m0.pcie0", "m0.pcie0>m0.pcie1", "m0.pcie1>m0.C"));
  EXPECT_THAT(LinksBetween(topology, "m0.A", "m1.A"), ElementsAre("m0.A>m1.A"));
}

TEST(PaperTopologiesTest, RefusesWhatCannotBeBuilt) {
  const auto refused = [](const PaperCluster& cluster) {
    const absl::StatusOr<Topology> topology = PaperTopology(cluster);
    EXPECT_EQ(topology.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(topology.status().message());
  };
  PaperCluster cluster;
  cluster.machines = 0;
  EXPECT_THAT(refused(cluster), HasSubstr("at least one machine"));
  cluster = {};
  cluster.gpus = 27;
  EXPECT_THAT(refused(cluster), HasSubstr("1 to 26 GPUs"));
  cluster = {};
  cluster.inside = InsideNetwork::kCubeMesh;
  EXPECT_THAT(refused(cluster), HasSubstr("a cube mesh has 8 GPUs, not 4"));
  cluster = {};
  cluster.between_rate = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(refused(cluster), HasSubstr("not a positive finite rate"));
  cluster = {};
  cluster.inside_rate = -1;
  EXPECT_THAT(refused(cluster), HasSubstr("-1 is not a positive finite rate"));
  cluster = {};
  cluster.machines = std::numeric_limits<int>::max();
  EXPECT_THAT(refused(cluster), HasSubstr("choose fewer"));
}

TEST(PaperTopologiesTest, ActiveSets) {
  const PaperCluster four = MakePaperCluster(4, 4, BetweenNetwork::kGpuPairs, 10);
  const absl::StatusOr<ActiveSet> some = MakeActiveSet(four, {"4", "0", "2", "1"});
  ASSERT_TRUE(some.ok()) << some.status();
  EXPECT_EQ(some->name, "(4,0,2,1)");
  EXPECT_THAT(some->workers, ElementsAre(0, 1, 2, 3, 8, 9, 12));
  const PaperCluster eight = MakePaperCluster(3, 8, BetweenNetwork::kGpuPairs, 100);
  EXPECT_THAT(MakeActiveSet(eight, {"2G", "3G", "4H"})->workers,
              ElementsAre(0, 6, 8, 9, 14, 16, 17, 22, 23));
  EXPECT_EQ(MakeActiveSet(four, {"4", "4", "4"}).status().message(), "3 codes for 4 machines");
  EXPECT_THAT(std::string(MakeActiveSet(four, {"4", "4", "2G", "1"}).status().message()),
              HasSubstr("2G: a machine has only 4 GPUs"));
  EXPECT_THAT(std::string(MakeActiveSet(four, {"4", "4", "x", "1"}).status().message()),
              HasSubstr("\"x\" is not a number of GPUs"));
  EXPECT_EQ(MakeActiveSet(four, {"0", "0", "0", "0"}).status().message(), "no worker is active");
}

TEST(PaperTopologiesTest, TheListedSetsExist) {
  for (const auto& codes : ActiveCodesOfFourByFour()) {
    EXPECT_TRUE(MakeActiveSet(MakePaperCluster(4, 4, BetweenNetwork::kGpuPairs, 10), codes).ok());
  }
  for (const auto& codes : ActiveCodesOfEightByEight()) {
    EXPECT_TRUE(MakeActiveSet(MakePaperCluster(8, 8, BetweenNetwork::kGpuPairs, 100), codes).ok());
  }
}

TEST(PaperTopologiesTest, NetworksByName) {
  for (const BetweenNetwork between :
       {BetweenNetwork::kGpuPairs, BetweenNetwork::kMachinePairs, BetweenNetwork::kSharedNics}) {
    EXPECT_EQ(*ParseBetweenNetwork(Name(between)), between);
  }
  EXPECT_THAT(std::string(ParseBetweenNetwork("mesh").status().message()),
              HasSubstr("choose gpu-pairs, machine-pairs or shared-nics"));
}

}  // namespace
}  // namespace syncopate::plan
