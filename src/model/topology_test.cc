#include "model/topology.h"

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "base/limits.h"
#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/topology_makers.h"
#include "model/topology_routes.h"

namespace syncopate {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The links between two devices; none if there is no way.
std::vector<int> Way(const Topology& topology, int from, int to) {
  return Routes(topology).Between(from, to).value_or(std::vector<int>());
}

std::string Message(const absl::Status& status) { return std::string(status.message()); }

// Two devices of one host, a third behind a switch, a route that is named.
Topology SampleTopology() {
  Topology topology;
  topology.version = 3;
  topology.source = "measured";
  topology.capacities = {{"bus", 30e9, 100e9, 1 << 20}, {"nic", 1.25e9}};
  topology.nodes.resize(5);
  topology.nodes[0] = {"d0", NodeKind::kDevice, 3, "", {}, 1e-6};
  topology.nodes[1] = {"d1", NodeKind::kDevice, 3, "", {}, 0};
  topology.nodes[2] = {"d2", NodeKind::kDevice, -1, "rack1", {}, 0};
  topology.nodes[3] = {"h", NodeKind::kHost, -1, "rack0", {0}, 0};
  topology.nodes[4] = {"sw", NodeKind::kSwitch, -1, "", {}, 0};
  topology.links = {
      {"a", 0, 3, 1e10, 1e-7, {}},     {"b", 3, 0, 1e10, 1e-7, {}},
      {"c", 1, 3, 1e10, 1e-7, {}},     {"d", 3, 1, 1e10, 1e-7, {}},
      {"up", 3, 4, 1.25e9, 2e-5, {1}}, {"down", 4, 3, 1.25e9, 2e-5, {1}},
      {"e", 4, 2, 1.25e9, 0, {}},      {"f", 2, 4, 1.25e9, 0, {}},
  };
  topology.routes = {{0, 2, {0, 4, 6}}};
  return topology;
}

TEST(TopologyTest, SampleIsValid) { EXPECT_EQ(Message(Validate(SampleTopology())), ""); }

struct Fault {
  const char* name;
  std::function<void(Topology&)> make;
  const char* message;
};

class TopologyFaultTest : public ::testing::TestWithParam<Fault> {};

TEST_P(TopologyFaultTest, IsRefusedWithItsPath) {
  Topology topology = SampleTopology();
  GetParam().make(topology);
  const absl::Status status = Validate(topology);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(status), HasSubstr(GetParam().message));
}

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

const Fault kFaults[] = {
    Fault{"NoDevice", [](Topology& t) { t = Topology(); }, "nodes: there is no device"},
    Fault{"NegativeBandwidth", [](Topology& t) { t.links[3].bandwidth = -1; },
          "links[3].bandwidth: -1 is not a positive finite number"},
    Fault{"ZeroBandwidth", [](Topology& t) { t.links[3].bandwidth = 0; },
          "links[3].bandwidth: 0 is not a positive finite number"},
    Fault{"NanBandwidth", [](Topology& t) { t.links[0].bandwidth = kNan; },
          "links[0].bandwidth: nan is not"},
    Fault{"InfiniteBandwidth", [](Topology& t) { t.links[0].bandwidth = kInfinity; },
          "links[0].bandwidth: inf is not"},
    Fault{"NegativeLatency", [](Topology& t) { t.links[1].latency = -1e-6; },
          "links[1].latency: -1e-06 is not a number of seconds from 0 to 60"},
    Fault{"NanLatency", [](Topology& t) { t.links[1].latency = kNan; }, "links[1].latency: nan"},
    Fault{"HugeLatency", [](Topology& t) { t.links[1].latency = 61; }, "links[1].latency: 61"},
    Fault{"LinkFromNowhere", [](Topology& t) { t.links[2].from = 5; },
          "links[2].from: 5 is not the index of a node"},
    Fault{"LinkToNowhere", [](Topology& t) { t.links[2].to = -1; },
          "links[2].to: -1 is not the index of a node"},
    Fault{"LinkToItself", [](Topology& t) { t.links[2].to = t.links[2].from; },
          "links[2].to: the link ends where it begins"},
    Fault{"RepeatedLinkId", [](Topology& t) { t.links[2].id = "a"; },
          "links[2].id: \"a\" is also the id of an earlier one"},
    Fault{"UnknownCapacityOfLink", [](Topology& t) { t.links[4].capacities = {2}; },
          "links[4].capacities[0]: 2 is not the index of a capacity"},
    Fault{"RepeatedCapacityOfLink",
          [](Topology& t) {
            t.links[4].capacities = {1, 1};
          },
          "links[4].capacities[1]: \"nic\" is already in this list"},
    Fault{"CapacityBandwidth", [](Topology& t) { t.capacities[1].bandwidth = 0; },
          "capacities[1].bandwidth: 0 is not"},
    Fault{"RepeatedCapacityId", [](Topology& t) { t.capacities[1].id = "bus"; },
          "capacities[1].id: \"bus\" is also"},
    Fault{"CacheWithoutBytes", [](Topology& t) { t.capacities[0].cache_bytes = 0; },
          "capacities[0].cache_bytes: must be positive"},
    Fault{"CacheWithoutBandwidth", [](Topology& t) { t.capacities[0].cached_bandwidth = 0; },
          "capacities[0].cached_bandwidth: 0 is not"},
    Fault{"EmptyNodeId", [](Topology& t) { t.nodes[1].id = ""; }, "nodes[1].id: the id is empty"},
    Fault{"RepeatedNodeId", [](Topology& t) { t.nodes[1].id = "sw"; }, "nodes[4].id: \"sw\""},
    Fault{"UnprintableId", [](Topology& t) { t.nodes[1].id = "a\nb"; },
          "nodes[1].id: there is a character that is not printable ASCII"},
    Fault{"LongId", [](Topology& t) { t.nodes[1].id = std::string(257, 'x'); },
          "nodes[1].id: 257 bytes are more than the limit of 256"},
    Fault{"LongSource", [](Topology& t) { t.source = std::string(257, 'x'); }, "source: 257"},
    Fault{"UnprintableGroup", [](Topology& t) { t.nodes[3].group = "\x80"; }, "nodes[3].group:"},
    Fault{"HostOfHost", [](Topology& t) { t.nodes[3].host = 3; },
          "nodes[3].host: a host has no host"},
    Fault{"HostIsSwitch", [](Topology& t) { t.nodes[0].host = 4; },
          "nodes[0].host: \"sw\" is a switch, not a host"},
    Fault{"HostIsNowhere", [](Topology& t) { t.nodes[0].host = 9; },
          "nodes[0].host: 9 is not the index of a node"},
    Fault{"UnknownMemory", [](Topology& t) { t.nodes[3].memory = {7}; },
          "nodes[3].memory[0]: 7 is not the index of a capacity"},
    Fault{"MemoryOfSwitch", [](Topology& t) { t.nodes[4].memory = {0}; },
          "nodes[4].memory: a switch holds no data"},
    Fault{"OverheadOfSwitch", [](Topology& t) { t.nodes[4].message_overhead = 1; },
          "nodes[4].message_overhead: only a device has one"},
    Fault{"NegativeOverhead", [](Topology& t) { t.nodes[0].message_overhead = -1; },
          "nodes[0].message_overhead: -1 is not"},
    Fault{"RouteFromSwitch", [](Topology& t) { t.routes[0].from = 4; },
          "routes[0].from: \"sw\" is a switch, not a device"},
    Fault{"RouteToNowhere", [](Topology& t) { t.routes[0].to = 5; },
          "routes[0].to: 5 is not the index of a node"},
    Fault{"RouteToItself", [](Topology& t) { t.routes[0].to = 0; },
          "routes[0].to: the route ends where it begins"},
    Fault{"RouteWithoutLinks", [](Topology& t) { t.routes[0].links = {}; },
          "routes[0].links: there is no link"},
    Fault{"RouteOfUnknownLink", [](Topology& t) { t.routes[0].links = {0, 8}; },
          "routes[0].links[1]: 8 is not the index of a link"},
    Fault{"RouteWithGap", [](Topology& t) { t.routes[0].links = {0, 6}; },
          "routes[0].links[1]: \"e\" starts at \"sw\", but the route has come to \"h\""},
    Fault{"RouteThatStopsShort", [](Topology& t) { t.routes[0].links = {0, 4}; },
          "routes[0].links: the route ends at \"sw\", not at \"d2\""},
    Fault{"RouteInCircles", [](Topology& t) { t.routes[0].links = {0, 1, 0, 1, 0, 4, 6}; },
          "routes[0].links: the route passes some node twice"},
    Fault{"RepeatedRoute", [](Topology& t) { t.routes.push_back(t.routes[0]); },
          "routes[1]: an earlier route joins the same devices"},
    Fault{"Unreachable", [](Topology& t) { t.links[7].to = 3, t.links[7].from = 0; },
          "there is no route from device \"d2\" to device \"d0\""}};

std::string FaultName(const ::testing::TestParamInfo<Fault>& fault) { return fault.param.name; }

INSTANTIATE_TEST_SUITE_P(All, TopologyFaultTest, ::testing::ValuesIn(kFaults), FaultName);

TEST(TopologyTest, DevicesDoNotPassMessagesOnUnlessARouteSaysSo) {
  Topology chain;
  chain.nodes.resize(3);
  for (int i = 0; i < 3; ++i) chain.nodes[i].id = std::string(1, static_cast<char>('x' + i));
  chain.links = {
      {"0", 0, 1, 1, 0, {}}, {"1", 1, 0, 1, 0, {}}, {"2", 1, 2, 1, 0, {}}, {"3", 2, 1, 1, 0, {}}};
  EXPECT_THAT(Message(Validate(chain)),
              HasSubstr("there is no route from device \"x\" to device \"z\""));
  chain.routes = {{0, 2, {0, 2}}};
  EXPECT_THAT(Message(Validate(chain)),
              HasSubstr("there is no route from device \"z\" to device \"x\""));
  chain.routes.push_back({2, 0, {3, 1}});
  EXPECT_EQ(Message(Validate(chain)), "");
}

TEST(TopologyTest, FindsDevicesNodesAndMemory) {
  const Topology topology = SampleTopology();
  EXPECT_THAT(Devices(topology), ElementsAre(0, 1, 2));
  EXPECT_EQ(*FindNode(topology, "sw"), 4);
  EXPECT_FALSE(FindNode(topology, "nowhere").ok());
  EXPECT_THAT(*PlaceInOrder(topology, 2), ElementsAre(0, 1));
  EXPECT_EQ(PlaceInOrder(topology, 4).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(MemoryOf(topology, 0), ElementsAre(0));
  EXPECT_THAT(MemoryOf(topology, 2), ElementsAre());
}

TEST(TopologyTest, DigestCoversAllButTheSource) {
  const Topology topology = SampleTopology();
  Topology other = topology;
  other.source = "declared";
  EXPECT_EQ(DigestOf(topology), DigestOf(other));
  const std::vector<std::function<void(Topology&)>> changes = {
      [](Topology& t) { ++t.version; },
      [](Topology& t) { t.links[2].bandwidth = std::nextafter(t.links[2].bandwidth, 0); },
      [](Topology& t) { t.links[2].latency *= 2; },
      [](Topology& t) { t.links[4].capacities = {}; },
      [](Topology& t) { t.capacities[0].cache_bytes += 1; },
      [](Topology& t) { t.nodes[0].host = -1; },
      [](Topology& t) { t.nodes[0].message_overhead = 0; },
      [](Topology& t) { t.nodes[2].group = "rack2"; },
      [](Topology& t) { t.routes.clear(); },
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    other = topology;
    changes[i](other);
    EXPECT_NE(DigestOf(topology), DigestOf(other)) << "change " << i;
  }
}

TEST(RoutesTest, NamedRoutesGoBeforeComputedOnes) {
  Topology topology = SampleTopology();
  topology.links.push_back({"direct", 0, 2, 1, 0, {}});
  ASSERT_TRUE(Validate(topology).ok());
  EXPECT_THAT(Way(topology, 0, 2), ElementsAre(0, 4, 6));
  topology.routes.clear();
  EXPECT_THAT(Way(topology, 0, 2), ElementsAre(8));
  EXPECT_THAT(Way(topology, 0, 0), ElementsAre());
  EXPECT_THAT(Way(topology, 2, 1), ElementsAre(7, 5, 3));
}

TEST(RoutesTest, LeastLatencyThenFewestLinksThenFirstInOrder) {
  // Two switches between two devices, and a way through both.
  Topology topology;
  topology.nodes = {{"a", NodeKind::kDevice, -1, "", {}, 0},
                    {"b", NodeKind::kDevice, -1, "", {}, 0},
                    {"s", NodeKind::kSwitch, -1, "", {}, 0},
                    {"t", NodeKind::kSwitch, -1, "", {}, 0}};
  topology.links = {{"0", 0, 2, 1, 0.1, {}}, {"1", 2, 1, 1, 0.3, {}}, {"2", 0, 3, 1, 0.2, {}},
                    {"3", 3, 1, 1, 0.2, {}}, {"4", 2, 3, 1, 0.1, {}}, {"5", 1, 0, 1, 0, {}}};
  ASSERT_EQ(Message(Validate(topology)), "");
  // All three ways take 0.4 s; the one through both switches has more links. 0.1 + 0.3 and 0.2 +
  // 0.2 must count as equal whatever the rounding.
  EXPECT_THAT(Way(topology, 0, 1), ElementsAre(0, 1));
  topology.links[4].latency = 0.05;
  EXPECT_THAT(Way(topology, 0, 1), ElementsAre(0, 4, 3));
  topology.links[3].latency = 0.1;
  topology.links[4].latency = 0.2;
  EXPECT_THAT(Way(topology, 0, 1), ElementsAre(2, 3));
}

TEST(TopologyMakersTest, AreValid) {
  for (const int n : {1, 2, 3, 8, 65}) {
    EXPECT_EQ(Message(Validate(SingleHostTopology(n, HostCosts()))), "") << n;
    EXPECT_EQ(Message(Validate(StarTopology(n, 1e9, 1e-5))), "") << n;
    EXPECT_EQ(Message(Validate(MeshTopology(n, 1e9, 1e-5))), "") << n;
    EXPECT_EQ(Message(Validate(TwoRackTopology(n, 1e9, 2e9, 1e-5))), "") << n;
  }
}

double LatencyOf(const Topology& topology, int from, int to) {
  double latency = 0;
  for (const int link : Way(topology, from, to)) latency += topology.links[link].latency;
  return latency;
}

TEST(TopologyMakersTest, LatencyIsThatOfTheWholeWay) {
  const Topology star = StarTopology(3, 1e9, 1e-5);
  const std::vector<int> devices = Devices(star);
  EXPECT_DOUBLE_EQ(LatencyOf(star, devices[0], devices[2]), 1e-5);
  const Topology racks = TwoRackTopology(2, 1e9, 2e9, 1e-5);
  const std::vector<int> d = Devices(racks);
  EXPECT_DOUBLE_EQ(LatencyOf(racks, d[0], d[1]), 1e-5);
  EXPECT_DOUBLE_EQ(LatencyOf(racks, d[0], d[3]), 2e-5);
}

TEST(TopologyMakersTest, HandoverTakesLongerWithMoreWorkersThanCores) {
  HostCosts costs;
  costs.cores = 2;
  costs.handover = 1e-6;
  costs.handover_oversubscribed = 5e-6;
  for (const auto& [workers, seconds] : {std::pair(2, 1e-6), std::pair(8, 20e-6)}) {
    EXPECT_DOUBLE_EQ(HandoverSeconds(costs, workers), seconds);
    const Topology host = SingleHostTopology(workers, costs);
    const std::vector<int> devices = Devices(host);
    EXPECT_DOUBLE_EQ(LatencyOf(host, devices[0], devices[1]), seconds);
  }
}

TEST(TopologyMakersTest, RandomOnesAreValidRoundTripAndRepeat) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const int devices = static_cast<int>(Random(seed).Between(1, 24));
    const Topology topology = RandomTopology(devices, seed);
    ASSERT_EQ(Message(Validate(topology)), "");
    EXPECT_EQ(Devices(topology).size(), static_cast<size_t>(devices));
    EXPECT_EQ(topology, RandomTopology(devices, seed));
    const absl::StatusOr<Topology> read = ParseTopology(ToJson(topology));
    ASSERT_EQ(Message(read.status()), "");
    EXPECT_EQ(*read, topology);
    EXPECT_EQ(DigestOf(*read), DigestOf(topology));
  }
}

TEST(TopologyTest, LargeTopologiesAreCheckedInReasonableTime) {
  // 4,096 devices in two racks: a walk for each pair would not end.
  EXPECT_EQ(Message(Validate(TwoRackTopology(limits::kWorkersMax / 2, 1e9, 1e9, 1e-5))), "");
}

}  // namespace
}  // namespace syncopate
