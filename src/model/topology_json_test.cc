#include <string>
#include <vector>

#include "absl/strings/str_replace.h"
#include "base/limits.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/topology.h"
#include "model/topology_routes.h"

namespace syncopate {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The links between two devices; none if there is no way.
std::vector<int> WayIn(const Topology& topology, int from, int to) {
  return Routes(topology).Between(from, to).value_or(std::vector<int>());
}

// The example of docs/topology.md.
constexpr char kExample[] = R"({
  "version": 3,
  "source": "declared",
  "shared_cores": 1.5,
  "capacities": [
    {"id": "h0.nic.up",   "bandwidth": "10Gbit/s"},
    {"id": "h0.nic.down", "bandwidth": "10Gbit/s"},
    {"id": "h0.memory",   "bandwidth": "30GB/s", "cached_bandwidth": "100GB/s", "cache_bytes": 25165824}
  ],
  "nodes": [
    {"id": "d0", "kind": "device", "host": "h0"},
    {"id": "d1", "kind": "device", "host": "h0", "message_overhead": "1us"},
    {"id": "h0", "kind": "host", "group": "pod0/rack1", "memory": ["h0.memory"]},
    {"id": "d2", "kind": "device"},
    {"id": "sw", "kind": "switch"}
  ],
  "links": [
    {"id": "d0>h0", "from": "d0", "to": "h0", "bandwidth": "30GB/s", "latency": "200ns"},
    {"id": "h0>d0", "from": "h0", "to": "d0", "bandwidth": "30GB/s", "latency": "200ns"},
    {"id": "d1>h0", "from": "d1", "to": "h0", "bandwidth": "30GB/s", "latency": "200ns"},
    {"id": "h0>d1", "from": "h0", "to": "d1", "bandwidth": "30GB/s", "latency": "200ns"},
    {"id": "h0>sw", "from": "h0", "to": "sw", "bandwidth": 1.25e9, "latency": 25e-6, "capacities": ["h0.nic.up"]},
    {"id": "sw>h0", "from": "sw", "to": "h0", "bandwidth": 1.25e9, "latency": 25e-6, "capacities": ["h0.nic.down"]},
    {"id": "d2>sw", "from": "d2", "to": "sw", "bandwidth": "200Mbit/s", "latency": "25us"},
    {"id": "sw>d2", "from": "sw", "to": "d2", "bandwidth": "200Mbit/s", "latency": "25us"}
  ],
  "routes": [{"from": "d0", "to": "d2", "links": ["d0>h0", "h0>sw", "sw>d2"]}]
})";

TEST(TopologyJsonTest, ReadsTheExample) {
  const absl::StatusOr<Topology> topology = ParseTopology(kExample);
  ASSERT_EQ(std::string(topology.status().message()), "");
  EXPECT_EQ(topology->version, 3u);
  EXPECT_EQ(topology->source, "declared");
  EXPECT_DOUBLE_EQ(topology->shared_cores, 1.5);
  EXPECT_DOUBLE_EQ(topology->capacities[0].bandwidth, 1.25e9);
  EXPECT_DOUBLE_EQ(topology->capacities[2].cached_bandwidth, 100e9);
  EXPECT_EQ(topology->capacities[2].cache_bytes, 25165824u);
  EXPECT_EQ(topology->nodes[0].host, 2);
  EXPECT_EQ(topology->nodes[2].group, "pod0/rack1");
  EXPECT_DOUBLE_EQ(topology->nodes[1].message_overhead, 1e-6);
  EXPECT_THAT(topology->nodes[2].memory, ElementsAre(2));
  EXPECT_DOUBLE_EQ(topology->links[6].bandwidth, 25e6);
  EXPECT_DOUBLE_EQ(topology->links[6].latency, 25e-6);
  EXPECT_THAT(topology->links[4].capacities, ElementsAre(0));
  EXPECT_THAT(topology->routes[0].links, ElementsAre(0, 4, 7));
  EXPECT_THAT(WayIn(*topology, 3, 1), ElementsAre(6, 5, 3));
}

TEST(TopologyJsonTest, RoundTrips) {
  const Topology topology = *ParseTopology(kExample);
  const std::string text = ToJson(topology);
  const absl::StatusOr<Topology> again = ParseTopology(text);
  ASSERT_EQ(std::string(again.status().message()), "");
  EXPECT_EQ(*again, topology);
  EXPECT_EQ(ToJson(*again), text);
}

TEST(TopologyJsonTest, TheLeastTopology) {
  const absl::StatusOr<Topology> one =
      ParseTopology(R"({"nodes": [{"id": "d", "kind": "device"}], "links": []})");
  ASSERT_EQ(std::string(one.status().message()), "");
  EXPECT_EQ(*ParseTopology(ToJson(*one)), *one);
}

// The example with one piece of text put in place of another is refused with that message.
struct JsonFault {
  const char* name;
  const char* old_text;
  const char* new_text;
  const char* message;
};

class TopologyJsonFaultTest : public ::testing::TestWithParam<JsonFault> {};

TEST_P(TopologyJsonFaultTest, IsRefusedWithItsPath) {
  const std::string text =
      absl::StrReplaceAll(kExample, {{GetParam().old_text, GetParam().new_text}});
  ASSERT_NE(text, kExample) << "the test changes nothing";
  const absl::StatusOr<Topology> topology = ParseTopology(text);
  EXPECT_EQ(topology.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(topology.status().message()), HasSubstr(GetParam().message));
}

const JsonFault kJsonFaults[] = {
    JsonFault{"Syntax", "\"version\": 3,", "\"version\": ,", "not JSON: parse error at line 2"},
    JsonFault{"Truncated", "[\"d0>h0\", \"h0>sw\", \"sw>d2\"]}]\n}", "", "not JSON: parse error"},
    JsonFault{"NotUtf8", "declared", "\xff", "not JSON: parse error"},
    JsonFault{"NotAnObject", kExample, "[1]", "the document: a list is not an object"},
    JsonFault{"NumberTooLarge", "1.25e9", "1e999", "not JSON: number overflow"},
    JsonFault{"RepeatedKey", "\"version\": 3,", "\"version\": 3, \"version\": 4,",
              "key \"version\" stands twice in one object"},
    JsonFault{"TooDeep", "[\"h0.memory\"]", "[[[[[[]]]]]]", "nested too deeply"},
    JsonFault{"UnknownKey", "\"version\": 3,", "\"vesrion\": 3,",
              "the document: unknown key \"vesrion\"; the keys here are nodes, links, version"},
    JsonFault{"UnknownKeyInLink", "\"latency\": \"25us\"}\n",
              "\"latency\": \"25us\", \"mtu\": 9000}\n", "links[7]: unknown key \"mtu\""},
    JsonFault{"UnknownKeyInRoute", "[{\"from\": \"d0\"", "[{\"via\": 1, \"from\": \"d0\"",
              "routes[0]: unknown key \"via\""},
    JsonFault{"MissingNodes", "\"nodes\"", "\"capacities2\"", "unknown key \"capacities2\""},
    JsonFault{"MissingLatency", ", \"latency\": \"25us\"}\n", "}\n",
              "links[7]: \"latency\" is missing"},
    JsonFault{"NegativeVersion", "\"version\": 3", "\"version\": -3",
              "version: -3 is not a whole number"},
    JsonFault{"FractionalVersion", "\"version\": 3", "\"version\": 3.5", "version: 3.5 is not"},
    JsonFault{"SourceIsNumber", "\"declared\"", "7", "source: 7 is not a string"},
    JsonFault{"RoutesUnclosed", "\"routes\": [{", "\"routes\": {\"a\": [{", "not JSON"},
    JsonFault{"RoutesNotAList",
              "[{\"from\": \"d0\", \"to\": \"d2\", \"links\": [\"d0>h0\", \"h0>sw\", \"sw>d2\"]}]",
              "{}", "routes: an object is not a list"},
    JsonFault{"NodeNotAnObject", "{\"id\": \"sw\", \"kind\": \"switch\"}", "17",
              "nodes[4]: 17 is not an object"},
    JsonFault{"IdNotAString", "{\"id\": \"sw\",", "{\"id\": 4,", "nodes[4].id: 4 is not a string"},
    JsonFault{"UnknownKind", "\"switch\"", "\"router\"",
              "nodes[4].kind: \"router\" is not a kind; write device, host or switch"},
    JsonFault{"UnknownHost", "\"host\": \"h0\"}", "\"host\": \"h9\"}",
              "nodes[0].host: \"h9\" is not the id of a node"},
    JsonFault{"UnknownMemory", "[\"h0.memory\"]", "[\"ram\"]",
              "nodes[2].memory[0]: \"ram\" is not the id of a capacity"},
    JsonFault{"MemoryNotAList", "[\"h0.memory\"]", "\"h0.memory\"",
              "nodes[2].memory: \"h0.memory\" is not a list"},
    JsonFault{"UnknownFrom", "\"from\": \"d2\"", "\"from\": \"d9\"",
              "links[6].from: \"d9\" is not the id of a node"},
    JsonFault{"UnknownTo", "\"to\": \"d2\", \"bandwidth\"", "\"to\": \"d9\", \"bandwidth\"",
              "links[7].to: \"d9\" is not the id of a node"},
    JsonFault{"UnknownCapacity", "[\"h0.nic.up\"]", "[\"h0.nic\"]",
              "links[4].capacities[0]: \"h0.nic\" is not the id of a capacity"},
    JsonFault{"UnknownLinkInRoute", "\"h0>sw\", \"sw>d2\"]", "\"h0>sw\", \"x\"]",
              "routes[0].links[2]: \"x\" is not the id of a link"},
    JsonFault{"NegativeBandwidth", "1.25e9, \"latency\": 25e-6, \"capacities\": [\"h0.nic.up\"]",
              "-1, \"latency\": 25e-6", "links[4].bandwidth: -1 is not a positive finite number"},
    JsonFault{"BandwidthWithoutTime", "\"200Mbit/s\", \"latency\": \"25us\"}\n",
              "\"200Mb\", \"latency\": \"25us\"}\n",
              "links[7].bandwidth: \"200Mb\" is not a positive rate; write 10Gbit/s"},
    JsonFault{"BandwidthNull", "\"200Mbit/s\", \"latency\": \"25us\"}\n",
              "null, \"latency\": \"25us\"}\n", "links[7].bandwidth: null is not a number"},
    JsonFault{"LatencyWithoutUnit", "\"latency\": \"25us\"}\n", "\"latency\": \"25\"}\n",
              "links[7].latency: \"25\" is not a time; write 50us"},
    JsonFault{"CapacityWithoutBandwidth", "\"h0.nic.up\",   \"bandwidth\": \"10Gbit/s\"",
              "\"h0.nic.up\"", "capacities[0]: \"bandwidth\" is missing"},
    JsonFault{"CacheBytesAsText", "25165824", "\"24M\"",
              "capacities[2].cache_bytes: \"24M\" is not a whole number"},
    JsonFault{"RepeatedId", "\"id\": \"d2>sw\"", "\"id\": \"sw>h0\"",
              "links[6].id: \"sw>h0\" is also"},
    JsonFault{"Unreachable", "{\"id\": \"d2>sw\", \"from\": \"d2\", \"to\": \"sw\"",
              "{\"id\": \"d2>sw\", \"from\": \"h0\", \"to\": \"sw\"",
              "there is no route from device \"d2\" to device \"d0\""}};

std::string JsonFaultName(const ::testing::TestParamInfo<JsonFault>& fault) {
  return fault.param.name;
}

INSTANTIATE_TEST_SUITE_P(All, TopologyJsonFaultTest, ::testing::ValuesIn(kJsonFaults),
                         JsonFaultName);

TEST(TopologyJsonTest, RefusesTextBeyondTheLimitBeforeReadingIt) {
  const std::string text(limits::kTopologyTextBytesMax + 1, '[');
  EXPECT_THAT(std::string(ParseTopology(text).status().message()),
              AllOf(HasSubstr("64 MiB"), HasSubstr("more than the limit")));
}

TEST(TopologyJsonTest, DeepNestingStopsEarly) {
  EXPECT_THAT(std::string(ParseTopology(std::string(1 << 20, '[')).status().message()),
              HasSubstr("nested too deeply"));
}

}  // namespace
}  // namespace syncopate
