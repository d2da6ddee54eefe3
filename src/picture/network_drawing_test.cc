#include "picture/network_drawing.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/topology_makers.h"
#include "picture/picture_testing.h"

namespace syncopate::picture {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

int Add(const std::string& id, NodeKind kind, Topology& topology) {
  topology.nodes.emplace_back();
  topology.nodes.back().id = id;
  topology.nodes.back().kind = kind;
  return static_cast<int>(topology.nodes.size()) - 1;
}

void Join(int a, int b, double bandwidth, Topology& topology) {
  for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)}) {
    topology.links.emplace_back();
    Topology::Link& link = topology.links.back();
    link.id = absl::StrCat(topology.nodes[from].id, ">", topology.nodes[to].id);
    link.from = from;
    link.to = to;
    link.bandwidth = bandwidth;
    link.latency = 1e-5;
  }
}

// Racks of hosts behind one core, as the probe finds them. No racks: every pair of hosts has links
// of its own.
Topology Cluster(int racks, int hosts, int workers) {
  Topology topology;
  topology.version = 1;
  std::vector<int> all;
  const int core = racks > 1 ? Add("core", NodeKind::kSwitch, topology) : -1;
  for (int r = 0; r < std::max(1, racks); ++r) {
    const int hub = racks > 0 ? Add(absl::StrCat("rack", r), NodeKind::kSwitch, topology) : -1;
    if (core >= 0) Join(hub, core, 2.5e8, topology);
    for (int h = 0; h < hosts; ++h) {
      const int host = Add(absl::StrCat("machine-", r, "-", h), NodeKind::kHost, topology);
      all.push_back(host);
      if (hub >= 0) Join(host, hub, 1.25e8, topology);
      for (int w = 0; w < workers; ++w) {
        const int device =
            Add(absl::StrCat("worker", Devices(topology).size()), NodeKind::kDevice, topology);
        topology.nodes[device].host = host;
        Join(device, host, 1e11, topology);
      }
    }
  }
  for (size_t i = 0; racks == 0 && i < all.size(); ++i) {
    for (size_t j = 0; j < i; ++j) Join(all[i], all[j], 1e7, topology);
  }
  return topology;
}

std::vector<Topology> Clusters() {
  std::vector<Topology> clusters = {StarTopology(1, 1e9, 1e-5), StarTopology(12, 1e9, 1e-5),
                                    StarTopology(40, 1e9, 1e-5)};
  for (const int racks : {0, 1, 2, 4}) {
    for (const int hosts : {2, 5, 16}) {
      for (const int workers : {1, 4}) clusters.push_back(Cluster(racks, hosts, workers));
    }
  }
  return clusters;
}

TEST(NetworkLayoutTest, NodesDoNotTouchAndAreInsideThePicture) {
  for (const Topology& topology : Clusters()) {
    ASSERT_TRUE(Validate(topology).ok()) << Validate(topology);
    const NetworkLayout layout = LayOut(topology);
    const size_t nodes = topology.nodes.size();
    SCOPED_TRACE(absl::StrCat(Devices(topology).size(), " devices, ", nodes, " nodes"));
    // Circles are not as wide as what is written below them.
    const auto half_of = [&](size_t node) -> Point {
      if (topology.nodes[node].kind == NodeKind::kDevice) return {8, 8};
      return {layout.half_width[node], 12};
    };
    for (size_t a = 0; a < nodes; ++a) {
      EXPECT_GE(layout.nodes[a].x, layout.half_width[a]);
      EXPECT_LE(layout.nodes[a].x, layout.width - layout.half_width[a]);
      EXPECT_GE(layout.nodes[a].y, 12);
      EXPECT_LE(layout.nodes[a].y, layout.height - 12);
      for (size_t b = 0; b < a; ++b) {
        const bool apart =
            std::abs(layout.nodes[a].x - layout.nodes[b].x) > half_of(a).x + half_of(b).x ||
            std::abs(layout.nodes[a].y - layout.nodes[b].y) > half_of(a).y + half_of(b).y;
        EXPECT_TRUE(apart) << topology.nodes[a].id << " and " << topology.nodes[b].id;
      }
    }
  }
}

TEST(NetworkDrawingTest, ALineForEachLinkAndACircleForEachDevice) {
  for (const Topology& topology : Clusters()) {
    const std::string svg = DrawNetwork(topology);
    EXPECT_EQ(CountOf(svg, "<line "), topology.links.size());
    EXPECT_EQ(CountOf(svg, "<title>device "), Devices(topology).size());
    for (const char* wrong : {"nan", "inf"}) EXPECT_THAT(svg, Not(HasSubstr(wrong)));
    EXPECT_EQ(svg, DrawNetwork(topology));
  }
}

// Links inside a machine are a thousand times as fast; they neither set the scale nor are labelled.
TEST(NetworkDrawingTest, RatesOfTheNetworkAreWritten) {
  const std::string svg = DrawNetwork(Cluster(2, 3, 2));
  EXPECT_EQ(CountOf(svg, ">250 MB/s</text>"), 4u);
  EXPECT_EQ(CountOf(svg, ">125 MB/s</text>"), 12u);
  EXPECT_EQ(CountOf(svg, " GB/s</text>"), 0u);
  EXPECT_EQ(CountOf(svg, "stroke-width='5.0'"), 4u);  // the uplinks are the widest
}

TEST(NetworkDrawingTest, LabelsThatWouldLieOnOneAnotherAreLeftOut) {
  EXPECT_EQ(CountOf(DrawNetwork(Cluster(0, 4, 1)), ">10 MB/s</text>"), 12u);
  EXPECT_EQ(CountOf(DrawNetwork(Cluster(0, 8, 1)), ">10 MB/s</text>"), 0u);
}

}  // namespace
}  // namespace syncopate::picture
