// The text form of a Topology: JSON, read with bounds and written so that it round-trips.
//
// Elements refer to one another by id in the text and by index in the value. Lists are therefore
// read in the order in which they refer to each other: capacities, nodes, the hosts of nodes,
// links, routes. Only the form is checked here, and limits before memory is taken; what the values
// mean is checked by Validate().
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "base/limits.h"
#include "base/parse.h"
#include "base/status.h"
#include "base/units.h"
#include "model/json_reader.h"
#include "model/topology.h"
#include "model/value_checks.h"

namespace syncopate {
namespace {

using json_reader::CheckList;
using json_reader::CheckObject;
using json_reader::Dump;
using json_reader::Excerpt;
using json_reader::Json;
using json_reader::Place;
using json_reader::ReadCount;
using json_reader::ReadNumber;
using json_reader::ReadString;
using value_checks::Fault;
using Ids = absl::flat_hash_map<std::string, int>;

constexpr size_t kTopologyDepthMax =
    5;  // the document, a list, its element, a list in it, one to spare

// The index of the element whose id stands here.
absl::StatusOr<int> ReadReference(const Place& place, const Ids& ids, absl::string_view what) {
  SYNCOPATE_ASSIGN_OR_RETURN(const std::string id, ReadString(place));
  const auto found = ids.find(id);
  if (found == ids.end()) {
    return Fault(place.path, absl::StrCat(Excerpt(place.json), " is not the id of a ", what));
  }
  return found->second;
}

absl::StatusOr<std::vector<int>> ReadReferences(const Place& place, const Ids& ids,
                                                absl::string_view what, uint64_t max) {
  SYNCOPATE_RETURN_IF_ERROR(CheckList(place, max));
  std::vector<int> indices;
  indices.reserve(place.json.size());
  for (size_t i = 0; i < place.json.size(); ++i) {
    SYNCOPATE_ASSIGN_OR_RETURN(const int index, ReadReference(place.Element(i), ids, what));
    indices.push_back(index);
  }
  return indices;
}

// Where the first element with each id stands; that ids are unique is Validate()'s business.
template <typename T>
Ids IdsOf(const std::vector<T>& elements) {
  Ids ids;
  for (size_t i = 0; i < elements.size(); ++i) ids.emplace(elements[i].id, static_cast<int>(i));
  return ids;
}

// Rates and latencies may be numbers or texts with a unit, "10Gbit/s" or "50us" (base/units.h).
absl::Status ReadCapacities(const Place& list, Topology& topology) {
  SYNCOPATE_RETURN_IF_ERROR(CheckList(list, limits::kTopologyCapacitiesMax));
  for (size_t i = 0; i < list.json.size(); ++i) {
    const Place place = list.Element(i);
    SYNCOPATE_RETURN_IF_ERROR(
        CheckObject(place, {"id", "bandwidth"}, {"cached_bandwidth", "cache_bytes"}));
    Topology::Capacity capacity;
    SYNCOPATE_ASSIGN_OR_RETURN(capacity.id, ReadString(place.Field("id")));
    SYNCOPATE_ASSIGN_OR_RETURN(capacity.bandwidth, ReadNumber(place.Field("bandwidth"), ParseRate));
    if (place.json.contains("cached_bandwidth")) {
      SYNCOPATE_ASSIGN_OR_RETURN(capacity.cached_bandwidth,
                                 ReadNumber(place.Field("cached_bandwidth"), ParseRate));
    }
    if (place.json.contains("cache_bytes")) {
      SYNCOPATE_ASSIGN_OR_RETURN(capacity.cache_bytes, ReadCount(place.Field("cache_bytes")));
    }
    topology.capacities.push_back(std::move(capacity));
  }
  return absl::OkStatus();
}

absl::StatusOr<NodeKind> ReadKind(const Place& place) {
  SYNCOPATE_ASSIGN_OR_RETURN(const std::string name, ReadString(place));
  for (const NodeKind kind : {NodeKind::kDevice, NodeKind::kHost, NodeKind::kSwitch}) {
    if (name == Name(kind)) return kind;
  }
  return Fault(place.path,
               absl::StrCat(Excerpt(place.json), " is not a kind; write device, host or switch"));
}

absl::Status ReadNodes(const Place& list, const Ids& capacities, Topology& topology) {
  SYNCOPATE_RETURN_IF_ERROR(CheckList(list, limits::kTopologyNodesMax));
  for (size_t i = 0; i < list.json.size(); ++i) {
    const Place place = list.Element(i);
    SYNCOPATE_RETURN_IF_ERROR(
        CheckObject(place, {"id", "kind"}, {"host", "group", "memory", "message_overhead"}));
    Topology::Node node;
    SYNCOPATE_ASSIGN_OR_RETURN(node.id, ReadString(place.Field("id")));
    SYNCOPATE_ASSIGN_OR_RETURN(node.kind, ReadKind(place.Field("kind")));
    if (place.json.contains("group")) {
      SYNCOPATE_ASSIGN_OR_RETURN(node.group, ReadString(place.Field("group")));
    }
    if (place.json.contains("memory")) {
      SYNCOPATE_ASSIGN_OR_RETURN(node.memory,
                                 ReadReferences(place.Field("memory"), capacities, "capacity",
                                                limits::kTopologyCapacitiesMax));
    }
    if (place.json.contains("message_overhead")) {
      SYNCOPATE_ASSIGN_OR_RETURN(node.message_overhead,
                                 ReadNumber(place.Field("message_overhead"), ParseSeconds));
    }
    topology.nodes.push_back(std::move(node));
  }
  return absl::OkStatus();
}

// After all nodes are read: a device may stand before its host.
absl::Status ReadHosts(const Place& list, const Ids& nodes, Topology& topology) {
  for (size_t i = 0; i < list.json.size(); ++i) {
    const Place place = list.Element(i);
    if (!place.json.contains("host")) continue;
    SYNCOPATE_ASSIGN_OR_RETURN(topology.nodes[i].host,
                               ReadReference(place.Field("host"), nodes, "node"));
  }
  return absl::OkStatus();
}

absl::Status ReadLinks(const Place& list, const Ids& nodes, const Ids& capacities,
                       Topology& topology) {
  SYNCOPATE_RETURN_IF_ERROR(CheckList(list, limits::kTopologyLinksMax));
  for (size_t i = 0; i < list.json.size(); ++i) {
    const Place place = list.Element(i);
    SYNCOPATE_RETURN_IF_ERROR(
        CheckObject(place, {"id", "from", "to", "bandwidth", "latency"}, {"capacities"}));
    Topology::Link link;
    SYNCOPATE_ASSIGN_OR_RETURN(link.id, ReadString(place.Field("id")));
    SYNCOPATE_ASSIGN_OR_RETURN(link.from, ReadReference(place.Field("from"), nodes, "node"));
    SYNCOPATE_ASSIGN_OR_RETURN(link.to, ReadReference(place.Field("to"), nodes, "node"));
    SYNCOPATE_ASSIGN_OR_RETURN(link.bandwidth, ReadNumber(place.Field("bandwidth"), ParseRate));
    SYNCOPATE_ASSIGN_OR_RETURN(link.latency, ReadNumber(place.Field("latency"), ParseSeconds));
    if (place.json.contains("capacities")) {
      SYNCOPATE_ASSIGN_OR_RETURN(link.capacities,
                                 ReadReferences(place.Field("capacities"), capacities, "capacity",
                                                limits::kTopologyCapacitiesMax));
    }
    topology.links.push_back(std::move(link));
  }
  return absl::OkStatus();
}

absl::Status ReadRoutes(const Place& list, const Ids& nodes, Topology& topology) {
  SYNCOPATE_RETURN_IF_ERROR(CheckList(list, limits::kTopologyRoutesMax));
  const Ids links = IdsOf(topology.links);
  for (size_t i = 0; i < list.json.size(); ++i) {
    const Place place = list.Element(i);
    SYNCOPATE_RETURN_IF_ERROR(CheckObject(place, {"from", "to", "links"}, {}));
    Topology::Route route;
    SYNCOPATE_ASSIGN_OR_RETURN(route.from, ReadReference(place.Field("from"), nodes, "node"));
    SYNCOPATE_ASSIGN_OR_RETURN(route.to, ReadReference(place.Field("to"), nodes, "node"));
    SYNCOPATE_ASSIGN_OR_RETURN(route.links, ReadReferences(place.Field("links"), links, "link",
                                                           limits::kTopologyNodesMax));
    topology.routes.push_back(std::move(route));
  }
  return absl::OkStatus();
}

absl::StatusOr<Topology> ReadTopology(const Place& document) {
  SYNCOPATE_RETURN_IF_ERROR(CheckObject(
      document, {"nodes", "links"}, {"version", "source", "shared_cores", "capacities", "routes"}));
  Topology topology;
  if (document.json.contains("version")) {
    SYNCOPATE_ASSIGN_OR_RETURN(topology.version, ReadCount(document.Field("version")));
  }
  if (document.json.contains("source")) {
    SYNCOPATE_ASSIGN_OR_RETURN(topology.source, ReadString(document.Field("source")));
  }
  if (document.json.contains("shared_cores")) {
    const Place cores = document.Field("shared_cores");
    // Unlike a rate it has no unit, so a text is not a way to write it.
    if (!cores.json.is_number()) {
      return Fault(cores.path, absl::StrCat(Excerpt(cores.json), " is not a number"));
    }
    topology.shared_cores = cores.json.get<double>();
  }
  if (document.json.contains("capacities")) {
    SYNCOPATE_RETURN_IF_ERROR(ReadCapacities(document.Field("capacities"), topology));
  }
  const Ids capacities = IdsOf(topology.capacities);
  SYNCOPATE_RETURN_IF_ERROR(ReadNodes(document.Field("nodes"), capacities, topology));
  const Ids nodes = IdsOf(topology.nodes);
  SYNCOPATE_RETURN_IF_ERROR(ReadHosts(document.Field("nodes"), nodes, topology));
  SYNCOPATE_RETURN_IF_ERROR(ReadLinks(document.Field("links"), nodes, capacities, topology));
  if (document.json.contains("routes")) {
    SYNCOPATE_RETURN_IF_ERROR(ReadRoutes(document.Field("routes"), nodes, topology));
  }
  SYNCOPATE_RETURN_IF_ERROR(Validate(topology));
  return topology;
}

// What ReadReferences() reads.
template <typename T>
Json IdList(const std::vector<int>& indices, const std::vector<T>& elements) {
  Json list = Json::array();
  for (const int index : indices) list.push_back(elements[index].id);
  return list;
}

// Fields that have their default are left out, so that each value has one text; DigestOf() rests on
// that.
Json ToJsonValue(const Topology& topology, const Topology::Node& node) {
  Json json = {{"id", node.id}, {"kind", std::string(Name(node.kind))}};
  if (node.host >= 0) json["host"] = topology.nodes[node.host].id;
  if (!node.group.empty()) json["group"] = node.group;
  if (!node.memory.empty()) json["memory"] = IdList(node.memory, topology.capacities);
  if (node.message_overhead != 0) json["message_overhead"] = node.message_overhead;
  return json;
}

Json ToJsonValue(const Topology::Capacity& capacity) {
  Json json = {{"id", capacity.id}, {"bandwidth", capacity.bandwidth}};
  if (capacity.cache_bytes != 0) {
    json["cached_bandwidth"] = capacity.cached_bandwidth;
    json["cache_bytes"] = capacity.cache_bytes;
  }
  return json;
}

Json ToJsonValue(const Topology& topology, const Topology::Link& link) {
  Json json = {{"id", link.id},
               {"from", topology.nodes[link.from].id},
               {"to", topology.nodes[link.to].id},
               {"bandwidth", link.bandwidth},
               {"latency", link.latency}};
  if (!link.capacities.empty()) json["capacities"] = IdList(link.capacities, topology.capacities);
  return json;
}

Json ToJsonValue(const Topology& topology, const Topology::Route& route) {
  return {{"from", topology.nodes[route.from].id},
          {"to", topology.nodes[route.to].id},
          {"links", IdList(route.links, topology.links)}};
}

// One element a line: short enough to read, and a diff shows what changed.
void AppendList(const char* key, const std::vector<Json>& elements, std::string& text) {
  absl::StrAppend(&text, ",\n \"", key, "\": [");
  for (size_t i = 0; i < elements.size(); ++i) {
    absl::StrAppend(&text, i == 0 ? "\n  " : ",\n  ", Dump(elements[i]));
  }
  absl::StrAppend(&text, "]");
}

}  // namespace

absl::StatusOr<Topology> ParseTopology(absl::string_view json) {
  if (json.size() > limits::kTopologyTextBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat("the topology has ", FormatBytes(json.size()),
                                                   ", more than the limit of ",
                                                   FormatBytes(limits::kTopologyTextBytesMax)));
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const Json document, json_reader::ParseJson(json, kTopologyDepthMax));
  return ReadTopology({document, ""});
}

std::string ToJson(const Topology& topology) {
  std::vector<Json> nodes, capacities, links, routes;
  for (const auto& node : topology.nodes) nodes.push_back(ToJsonValue(topology, node));
  for (const auto& capacity : topology.capacities) capacities.push_back(ToJsonValue(capacity));
  for (const auto& link : topology.links) links.push_back(ToJsonValue(topology, link));
  for (const auto& route : topology.routes) routes.push_back(ToJsonValue(topology, route));
  std::string text = absl::StrCat("{\"version\": ", topology.version,
                                  ",\n \"source\": ", Dump(Json(topology.source)));
  if (topology.shared_cores != 0) {
    absl::StrAppend(&text, ",\n \"shared_cores\": ", Dump(Json(topology.shared_cores)));
  }
  // In the order in which they are read, so that a reader meets every id before its first use.
  AppendList("capacities", capacities, text);
  AppendList("nodes", nodes, text);
  AppendList("links", links, text);
  AppendList("routes", routes, text);
  absl::StrAppend(&text, "}\n");
  return text;
}

}  // namespace syncopate
