#include "plan/forest/symmetry.h"

#include <numeric>

#include "gtest/gtest.h"
#include "model/topology_makers.h"
#include "plan/forest/forest_testing.h"
#include "plan/forest/packing.h"
#include "plan/forest/paper_topologies.h"

namespace syncopate::plan {
namespace {

PackingNetwork NetworkOf(const Topology& topology) {
  const size_t workers = Devices(topology).size();
  return *PackingNetwork::Make(topology, *PlaceInOrder(topology, static_cast<int>(workers)),
                               AllOf(workers));
}

TEST(SymmetryTest, ExchangesInAMesh) {
  Topology mesh = MeshTopology(3, 1e9, 0);
  EXPECT_TRUE(ResourceImages(NetworkOf(mesh), {0, 1, 2}, {1, 0, 2}).has_value());
  EXPECT_TRUE(ResourceImages(NetworkOf(mesh), {0, 1}, {1, 0, 2}).has_value());
  EXPECT_FALSE(ResourceImages(NetworkOf(mesh), {0, 2}, {1, 0, 2}).has_value()) << "not active";
  mesh.links[0].bandwidth = 2e9;  // from the first device to the second
  EXPECT_FALSE(ResourceImages(NetworkOf(mesh), {0, 1, 2}, {1, 0, 2}).has_value());
  EXPECT_TRUE(ResourceImages(NetworkOf(mesh), {0, 1, 2}, {0, 1, 2}).has_value());
}

// Two racks: workers of one can be exchanged, and the racks as a whole, but not two single workers.
TEST(SymmetryTest, SharedPartsMustStayTogether) {
  const PackingNetwork network = NetworkOf(TwoRackTopology(2, 1e9, 1e9, 0));
  EXPECT_TRUE(ResourceImages(network, AllOf(4), {1, 0, 2, 3}).has_value());
  EXPECT_TRUE(ResourceImages(network, AllOf(4), {2, 3, 0, 1}).has_value());
  EXPECT_FALSE(ResourceImages(network, AllOf(4), {2, 1, 0, 3}).has_value());
}

TEST(SymmetryTest, AlikeMachinesLeaveFewResources) {
  const Topology four = *PaperTopology(MakePaperCluster(4, 4, BetweenNetwork::kGpuPairs, 10));
  const std::vector<int> placement = *PlaceInOrder(four, 16);
  const PackingNetwork network = NetworkOf(four);
  const PackingNetwork joined = JoinImages(network, AllOf(16), SymmetryCandidates(four, placement));
  ASSERT_EQ(joined.resources().size(), 2u);
  EXPECT_DOUBLE_EQ(joined.resources()[0].rate, 4 * 12 * 12.5e9);
  EXPECT_DOUBLE_EQ(joined.resources()[1].rate, 12 * 16 * 1.25e9);
  EXPECT_EQ(joined.Loads(0, 1).size(), 1u);
  PackingNetwork copy = joined;
  EXPECT_EQ(copy.UpdateRates(four).code(), absl::StatusCode::kFailedPrecondition);
}

// The claim itself: the joined network has the same best time and the same bound.
TEST(SymmetryTest, TheBestTimeStaysTheSame) {
  for (const BetweenNetwork between :
       {BetweenNetwork::kGpuPairs, BetweenNetwork::kMachinePairs, BetweenNetwork::kSharedNics}) {
    for (const std::vector<std::string>& codes : {std::vector<std::string>{"4", "4", "4", "4"},
                                                  {"4", "3", "2", "1"},
                                                  {"1", "1", "1", "0"},
                                                  {"2", "2", "0", "0"}}) {
      const PaperCluster cluster = MakePaperCluster(4, 4, between, 25);
      const Topology topology = *PaperTopology(cluster);
      const std::vector<int> active = MakeActiveSet(cluster, codes)->workers;
      const PackingNetwork network = NetworkOf(topology);
      const PackingNetwork joined =
          JoinImages(network, active, SymmetryCandidates(topology, *PlaceInOrder(topology, 16)));
      EXPECT_LT(joined.resources().size(), network.resources().size());
      for (const Stages stages : {Stages::kOne, Stages::kSeparate}) {
        PackingOptions options;
        options.stages = stages;
        const absl::StatusOr<Packing> whole = Packer(network, active, options).Solve();
        const absl::StatusOr<Packing> quick = Packer(joined, active, options).Solve();
        ASSERT_TRUE(whole.ok() && quick.ok()) << whole.status() << quick.status();
        EXPECT_LE(quick->bound, whole->seconds_per_byte * (1 + 1e-6)) << Name(between);
        EXPECT_LE(whole->bound, quick->seconds_per_byte * (1 + 1e-6)) << Name(between);
        EXPECT_LE(quick->seconds_per_byte, 1.01 * quick->bound) << Name(between);
      }
    }
  }
}

TEST(SymmetryTest, NoHostsNoCandidates) {
  const Topology star = StarTopology(5, 1e9, 0);
  const std::vector<int> placement = *PlaceInOrder(star, 5);
  EXPECT_TRUE(SymmetryCandidates(star, placement).empty());
  const PackingNetwork network = NetworkOf(star);
  EXPECT_EQ(JoinImages(network, AllOf(5), {}).resources().size(), network.resources().size());
}

}  // namespace
}  // namespace syncopate::plan
