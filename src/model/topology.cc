// Whether a topology makes sense, and small questions to one. Each check names the place of the
// first fault as the JSON form has it, because that is what people write and read.
#include "model/topology.h"

#include <cmath>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/limits.h"
#include "base/status.h"
#include "model/topology_routes.h"
#include "model/value_checks.h"

namespace syncopate {
namespace {

using value_checks::CheckPrintable;
using value_checks::CheckSeconds;
using value_checks::Fault;

std::string Element(absl::string_view list, size_t index) {
  return absl::StrCat(list, "[", index, "]");
}

std::string Field(absl::string_view list, size_t index, absl::string_view field) {
  return absl::StrCat(list, "[", index, "].", field);
}

bool InRange(int index, size_t size) { return index >= 0 && static_cast<size_t>(index) < size; }

absl::Status CheckCount(absl::string_view list, size_t count, uint64_t max) {
  if (count <= max) return absl::OkStatus();
  return Fault(list, absl::StrCat(count, " entries are more than the limit of ", max));
}

absl::Status CheckText(const std::string& path, absl::string_view text) {
  return CheckPrintable(path, text, limits::kTopologyNameBytesMax);
}

absl::Status CheckId(const std::string& path, absl::string_view id,
                     absl::flat_hash_set<absl::string_view>& seen) {
  if (id.empty()) return Fault(path, "the id is empty");
  SYNCOPATE_RETURN_IF_ERROR(CheckText(path, id));
  if (!seen.insert(id).second) {
    return Fault(path, absl::StrCat("\"", id, "\" is also the id of an earlier one"));
  }
  return absl::OkStatus();
}

absl::Status CheckPositive(const std::string& path, double value) {
  if (std::isfinite(value) && value > 0) return absl::OkStatus();
  return Fault(path, absl::StrFormat("%.9g is not a positive finite number", value));
}

absl::Status CheckLatency(const std::string& path, double value) {
  return CheckSeconds(path, value, limits::kTopologyLatencySecondsMax);
}

absl::Status CheckReference(const std::string& path, int index, size_t size,
                            absl::string_view what) {
  if (InRange(index, size)) return absl::OkStatus();
  return Fault(path, absl::StrCat(index, " is not the index of a ", what));
}

// A capacity that stood in the list twice would be loaded twice by every byte.
absl::Status CheckCapacityList(const Topology& topology, const std::string& path,
                               const std::vector<int>& capacities) {
  absl::flat_hash_set<int> seen;
  for (size_t i = 0; i < capacities.size(); ++i) {
    SYNCOPATE_RETURN_IF_ERROR(
        CheckReference(Element(path, i), capacities[i], topology.capacities.size(), "capacity"));
    if (!seen.insert(capacities[i]).second) {
      return Fault(Element(path, i), absl::StrCat("\"", topology.capacities[capacities[i]].id,
                                                  "\" is already in this list"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckCapacities(const Topology& topology) {
  absl::flat_hash_set<absl::string_view> ids;
  for (size_t i = 0; i < topology.capacities.size(); ++i) {
    const Topology::Capacity& capacity = topology.capacities[i];
    SYNCOPATE_RETURN_IF_ERROR(CheckId(Field("capacities", i, "id"), capacity.id, ids));
    SYNCOPATE_RETURN_IF_ERROR(
        CheckPositive(Field("capacities", i, "bandwidth"), capacity.bandwidth));
    // The two belong together: a cache without a size or without a rate says nothing.
    if (capacity.cached_bandwidth == 0 && capacity.cache_bytes == 0) continue;
    SYNCOPATE_RETURN_IF_ERROR(
        CheckPositive(Field("capacities", i, "cached_bandwidth"), capacity.cached_bandwidth));
    if (capacity.cache_bytes == 0) {
      return Fault(Field("capacities", i, "cache_bytes"),
                   "must be positive where there is a cached_bandwidth");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckNodes(const Topology& topology) {
  absl::flat_hash_set<absl::string_view> ids;
  bool any_device = false;
  for (size_t i = 0; i < topology.nodes.size(); ++i) {
    const Topology::Node& node = topology.nodes[i];
    SYNCOPATE_RETURN_IF_ERROR(CheckId(Field("nodes", i, "id"), node.id, ids));
    SYNCOPATE_RETURN_IF_ERROR(CheckText(Field("nodes", i, "group"), node.group));
    const bool device = node.kind == NodeKind::kDevice;
    any_device = any_device || device;
    if (node.host != -1) {
      const std::string path = Field("nodes", i, "host");
      if (!device) return Fault(path, absl::StrCat("a ", Name(node.kind), " has no host"));
      SYNCOPATE_RETURN_IF_ERROR(CheckReference(path, node.host, topology.nodes.size(), "node"));
      const Topology::Node& host = topology.nodes[node.host];
      if (host.kind != NodeKind::kHost) {
        return Fault(path,
                     absl::StrCat("\"", host.id, "\" is a ", Name(host.kind), ", not a host"));
      }
    }
    if (node.kind == NodeKind::kSwitch && !node.memory.empty()) {
      return Fault(Field("nodes", i, "memory"), "a switch holds no data");
    }
    SYNCOPATE_RETURN_IF_ERROR(
        CheckCapacityList(topology, Field("nodes", i, "memory"), node.memory));
    if (!device && node.message_overhead != 0) {
      return Fault(Field("nodes", i, "message_overhead"), "only a device has one");
    }
    SYNCOPATE_RETURN_IF_ERROR(
        CheckLatency(Field("nodes", i, "message_overhead"), node.message_overhead));
  }
  if (!any_device) return Fault("nodes", "there is no device");
  if (topology.shared_cores != 0) {
    SYNCOPATE_RETURN_IF_ERROR(CheckPositive("shared_cores", topology.shared_cores));
  }
  return absl::OkStatus();
}

absl::Status CheckLinks(const Topology& topology) {
  absl::flat_hash_set<absl::string_view> ids;
  for (size_t i = 0; i < topology.links.size(); ++i) {
    const Topology::Link& link = topology.links[i];
    SYNCOPATE_RETURN_IF_ERROR(CheckId(Field("links", i, "id"), link.id, ids));
    SYNCOPATE_RETURN_IF_ERROR(
        CheckReference(Field("links", i, "from"), link.from, topology.nodes.size(), "node"));
    SYNCOPATE_RETURN_IF_ERROR(
        CheckReference(Field("links", i, "to"), link.to, topology.nodes.size(), "node"));
    if (link.from == link.to) {
      return Fault(Field("links", i, "to"), "the link ends where it begins");
    }
    SYNCOPATE_RETURN_IF_ERROR(CheckPositive(Field("links", i, "bandwidth"), link.bandwidth));
    SYNCOPATE_RETURN_IF_ERROR(CheckLatency(Field("links", i, "latency"), link.latency));
    SYNCOPATE_RETURN_IF_ERROR(
        CheckCapacityList(topology, Field("links", i, "capacities"), link.capacities));
  }
  return absl::OkStatus();
}

absl::Status CheckRouteEnd(const Topology& topology, const std::string& path, int node) {
  SYNCOPATE_RETURN_IF_ERROR(CheckReference(path, node, topology.nodes.size(), "node"));
  const Topology::Node& end = topology.nodes[node];
  if (end.kind == NodeKind::kDevice) return absl::OkStatus();
  return Fault(path, absl::StrCat("\"", end.id, "\" is a ", Name(end.kind), ", not a device"));
}

// Checks that the links lead from one end to the other.
absl::Status CheckRouteLinks(const Topology& topology, size_t index) {
  const Topology::Route& route = topology.routes[index];
  const std::string path = Field("routes", index, "links");
  if (route.links.empty()) return Fault(path, "there is no link");
  // A bound on the work that follows, which is all that is wanted here.
  if (route.links.size() > topology.nodes.size()) {
    return Fault(path, "the route passes some node twice");
  }
  int at = route.from;
  for (size_t i = 0; i < route.links.size(); ++i) {
    SYNCOPATE_RETURN_IF_ERROR(
        CheckReference(Element(path, i), route.links[i], topology.links.size(), "link"));
    const Topology::Link& link = topology.links[route.links[i]];
    if (link.from != at) {
      return Fault(Element(path, i),
                   absl::StrCat("\"", link.id, "\" starts at \"", topology.nodes[link.from].id,
                                "\", but the route has come to \"", topology.nodes[at].id, "\""));
    }
    at = link.to;
  }
  if (at != route.to) {
    return Fault(path, absl::StrCat("the route ends at \"", topology.nodes[at].id, "\", not at \"",
                                    topology.nodes[route.to].id, "\""));
  }
  return absl::OkStatus();
}

absl::Status CheckRoutes(const Topology& topology) {
  absl::flat_hash_set<std::pair<int, int>> seen;
  for (size_t i = 0; i < topology.routes.size(); ++i) {
    const Topology::Route& route = topology.routes[i];
    SYNCOPATE_RETURN_IF_ERROR(CheckRouteEnd(topology, Field("routes", i, "from"), route.from));
    SYNCOPATE_RETURN_IF_ERROR(CheckRouteEnd(topology, Field("routes", i, "to"), route.to));
    if (route.from == route.to) {
      return Fault(Field("routes", i, "to"), "the route ends where it begins");
    }
    SYNCOPATE_RETURN_IF_ERROR(CheckRouteLinks(topology, i));
    if (!seen.emplace(route.from, route.to).second) {
      return Fault(Element("routes", i), "an earlier route joins the same devices");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::string_view Name(NodeKind kind) {
  switch (kind) {
    case NodeKind::kDevice:
      return "device";
    case NodeKind::kHost:
      return "host";
    case NodeKind::kSwitch:
      return "switch";
  }
  return "?";
}

absl::Status Validate(const Topology& topology) {
  SYNCOPATE_RETURN_IF_ERROR(CheckText("source", topology.source));
  SYNCOPATE_RETURN_IF_ERROR(CheckCount("nodes", topology.nodes.size(), limits::kTopologyNodesMax));
  SYNCOPATE_RETURN_IF_ERROR(
      CheckCount("capacities", topology.capacities.size(), limits::kTopologyCapacitiesMax));
  SYNCOPATE_RETURN_IF_ERROR(CheckCount("links", topology.links.size(), limits::kTopologyLinksMax));
  SYNCOPATE_RETURN_IF_ERROR(
      CheckCount("routes", topology.routes.size(), limits::kTopologyRoutesMax));
  // In the order in which elements refer to each other: each check may trust the indices of those
  // before it. Whether all devices reach each other can be asked only of links that are right.
  SYNCOPATE_RETURN_IF_ERROR(CheckCapacities(topology));
  SYNCOPATE_RETURN_IF_ERROR(CheckNodes(topology));
  SYNCOPATE_RETURN_IF_ERROR(CheckLinks(topology));
  SYNCOPATE_RETURN_IF_ERROR(CheckRoutes(topology));
  return CheckReachability(topology);
}

Digest DigestOf(const Topology& topology) {
  // Where the numbers come from does not change a plan, so workers that got the same topology in
  // different ways must agree.
  Topology bare = topology;
  bare.source.clear();
  return DigestOf(absl::string_view(ToJson(bare)));
}

std::vector<int> Devices(const Topology& topology) {
  std::vector<int> devices;
  for (size_t i = 0; i < topology.nodes.size(); ++i) {
    if (topology.nodes[i].kind == NodeKind::kDevice) devices.push_back(static_cast<int>(i));
  }
  return devices;
}

absl::StatusOr<int> FindNode(const Topology& topology, absl::string_view id) {
  for (size_t i = 0; i < topology.nodes.size(); ++i) {
    if (topology.nodes[i].id == id) return static_cast<int>(i);
  }
  return absl::NotFoundError(absl::StrCat("the topology has no node \"", id, "\""));
}

absl::StatusOr<std::vector<int>> PlaceInOrder(const Topology& topology, int workers) {
  std::vector<int> devices = Devices(topology);
  if (workers < 0 || devices.size() < static_cast<size_t>(workers)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the topology has ", devices.size(), " devices, too few for ", workers, " workers"));
  }
  devices.resize(static_cast<size_t>(workers));
  return devices;
}

const std::vector<int>& MemoryOf(const Topology& topology, int device) {
  const Topology::Node& node = topology.nodes[device];
  // A device without a memory of its own works in that of its host.
  if (!node.memory.empty() || node.host < 0) return node.memory;
  return topology.nodes[node.host].memory;
}

}  // namespace syncopate
