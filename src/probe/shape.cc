#include "probe/shape.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "model/topology_makers.h"

namespace syncopate::probe {
namespace {

// Latency that a hop has at least, so that a longer way is never as short as a shorter one.
constexpr double kHopSecondsMin = 1e-7;

// A worker's own time for each message over a network, each way: system calls and waking up.
constexpr double kNetworkMessageSeconds = 10e-6;

class Builder {
 public:
  int Node(const std::string& id, NodeKind kind) {
    Topology::Node node;
    node.id = id;
    node.kind = kind;
    topology.nodes.push_back(std::move(node));
    return static_cast<int>(topology.nodes.size()) - 1;
  }

  int Capacity(const std::string& id, double bandwidth) {
    Topology::Capacity capacity;
    capacity.id = id;
    capacity.bandwidth = std::max(bandwidth, 1.0);
    topology.capacities.push_back(std::move(capacity));
    return static_cast<int>(topology.capacities.size()) - 1;
  }

  void Link(int from, int to, double bandwidth, double latency, std::vector<int> capacities) {
    Topology::Link link;
    link.id = absl::StrCat(topology.nodes[from].id, ">", topology.nodes[to].id);
    link.from = from;
    link.to = to;
    link.bandwidth = std::max(bandwidth, 1.0);
    link.latency = std::max(latency, kHopSecondsMin);
    link.capacities = std::move(capacities);
    topology.links.push_back(std::move(link));
  }

  // Joins `node` to the switch above it. `up` and `down` are the names of the two capacities.
  void Attach(int node, int hub, const char* up, double up_rate, const char* down, double down_rate,
              double latency) {
    const std::string id = topology.nodes[node].id;
    const int up_capacity = Capacity(absl::StrCat(id, ".", up), up_rate);
    const int down_capacity = Capacity(absl::StrCat(id, ".", down), down_rate);
    Link(node, hub, up_rate, latency, {up_capacity});
    Link(hub, node, down_rate, latency, {down_capacity});
  }

  Topology topology;
};

std::string GroupOf(const NetworkShape& shape, const NetworkShape::Host& host) {
  if (shape.racks.size() < 2) return "";
  const NetworkShape::Rack& rack = shape.racks[static_cast<size_t>(host.rack)];
  if (shape.pods.size() < 2) return rack.name;
  return absl::StrCat(shape.pods[static_cast<size_t>(rack.pod)].name, "/", rack.name);
}

// Devices in the order of the workers, and the hosts that hold them.
std::vector<int> AddHosts(const NetworkShape& shape, Builder& builder) {
  std::vector<std::pair<int, int>> workers;  // worker, host
  for (size_t h = 0; h < shape.hosts.size(); ++h) {
    for (const int worker : shape.hosts[h].workers)
      workers.emplace_back(worker, static_cast<int>(h));
  }
  std::sort(workers.begin(), workers.end());
  std::vector<int> devices;
  for (const auto& [worker, host] : workers) {
    const int device = builder.Node(absl::StrCat("worker", worker), NodeKind::kDevice);
    builder.topology.nodes[device].group = GroupOf(shape, shape.hosts[static_cast<size_t>(host)]);
    devices.push_back(device);
  }
  const HostCosts costs;
  std::vector<int> hosts;
  for (const NetworkShape::Host& host : shape.hosts) {
    const int node = builder.Node(host.name, NodeKind::kHost);
    builder.topology.nodes[node].group = GroupOf(shape, host);
    hosts.push_back(node);
    if (host.workers.size() > 1) {  // they hand over through its memory
      const int memory =
          builder.Capacity(absl::StrCat(host.name, ".memory"), costs.memory_bandwidth);
      builder.topology.capacities[memory].cached_bandwidth = costs.cached_bandwidth;
      builder.topology.capacities[memory].cache_bytes = costs.cache_bytes;
      builder.topology.nodes[node].memory = {memory};
    }
  }
  for (size_t i = 0; i < workers.size(); ++i) {
    const size_t host = static_cast<size_t>(workers[i].second);
    builder.topology.nodes[devices[i]].host = hosts[host];
    builder.topology.nodes[devices[i]].message_overhead =
        shape.hosts.size() > 1 ? kNetworkMessageSeconds : costs.message_overhead;
    const double half =
        HandoverSeconds(costs, static_cast<int>(shape.hosts[host].workers.size())) / 2;
    builder.Link(devices[i], hosts[host], costs.cached_bandwidth, half, {});
    builder.Link(hosts[host], devices[i], costs.cached_bandwidth, half, {});
  }
  return hosts;
}

void AddPairLinks(const NetworkShape& shape, const std::vector<int>& hosts, Builder& builder) {
  const double latency = shape.racks.empty() ? 0 : shape.racks.front().latency;
  for (size_t from = 0; from < hosts.size(); ++from) {
    for (size_t to = 0; to < hosts.size(); ++to) {
      if (from == to) continue;
      builder.Link(hosts[from], hosts[to], shape.links[from][to], latency, {});
    }
  }
}

void AddTree(const NetworkShape& shape, const std::vector<int>& hosts, Builder& builder) {
  const bool racks = shape.racks.size() > 1;
  const bool pods = shape.pods.size() > 1;
  std::vector<int> hubs;  // by rack
  for (const NetworkShape::Rack& rack : shape.racks) {
    hubs.push_back(builder.Node(racks ? rack.name : "switch", NodeKind::kSwitch));
  }
  double inside = 0;
  for (size_t h = 0; h < hosts.size(); ++h) {
    const NetworkShape::Host& host = shape.hosts[h];
    const size_t rack = static_cast<size_t>(host.rack);
    inside = std::max(inside, shape.racks[rack].latency);
    builder.Attach(hosts[h], hubs[rack], "out", host.out, "in", host.in,
                   shape.racks[rack].latency / 2);
  }
  if (!racks) return;
  const int core = builder.Node("core", NodeKind::kSwitch);
  const double uplink = std::max(0.0, shape.latency_between_racks - inside) / 2;
  std::vector<int> pod_hubs;
  for (const NetworkShape::Pod& pod : shape.pods) {
    if (!pods) break;
    pod_hubs.push_back(builder.Node(pod.name, NodeKind::kSwitch));
    builder.Attach(pod_hubs.back(), core, "up", pod.up, "down", pod.down, uplink / 2);
  }
  for (size_t r = 0; r < shape.racks.size(); ++r) {
    const NetworkShape::Rack& rack = shape.racks[r];
    builder.Attach(hubs[r], pods ? pod_hubs[static_cast<size_t>(rack.pod)] : core, "up", rack.up,
                   "down", rack.down, pods ? uplink / 2 : uplink);
  }
}

}  // namespace

Topology ToTopology(const NetworkShape& shape) {
  Builder builder;
  builder.topology.version = 1;
  builder.topology.source = "measured";
  const std::vector<int> hosts = AddHosts(shape, builder);
  if (hosts.size() > 1) {
    if (shape.links.empty()) {
      AddTree(shape, hosts, builder);
    } else {
      AddPairLinks(shape, hosts, builder);
    }
  }
  return std::move(builder.topology);
}

}  // namespace syncopate::probe
