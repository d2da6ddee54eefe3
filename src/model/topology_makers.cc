#include "model/topology_makers.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/random.h"

namespace syncopate {
namespace {

int AddNode(Topology& topology, std::string id, NodeKind kind) {
  Topology::Node node;
  node.id = std::move(id);
  node.kind = kind;
  topology.nodes.push_back(std::move(node));
  return static_cast<int>(topology.nodes.size()) - 1;
}

int AddDevice(Topology& topology, int index) {
  return AddNode(topology, absl::StrCat("device", index), NodeKind::kDevice);
}

int AddCapacity(Topology& topology, std::string id, double bandwidth) {
  Topology::Capacity capacity;
  capacity.id = std::move(id);
  capacity.bandwidth = bandwidth;
  topology.capacities.push_back(std::move(capacity));
  return static_cast<int>(topology.capacities.size()) - 1;
}

void AddLink(Topology& topology, int from, int to, double bandwidth, double latency,
             std::vector<int> capacities = {}) {
  Topology::Link link;
  link.id = absl::StrCat(topology.nodes[from].id, ">", topology.nodes[to].id);
  link.from = from;
  link.to = to;
  link.bandwidth = bandwidth;
  link.latency = latency;
  link.capacities = std::move(capacities);
  topology.links.push_back(std::move(link));
}

// Joins `node` to `hub` by a NIC: a link and a capacity in each direction.
void AttachByNic(Topology& topology, int node, int hub, double bandwidth, double latency) {
  const std::string id = topology.nodes[node].id;
  const int up = AddCapacity(topology, absl::StrCat(id, ".up"), bandwidth);
  const int down = AddCapacity(topology, absl::StrCat(id, ".down"), bandwidth);
  AddLink(topology, node, hub, bandwidth, latency, {up});
  AddLink(topology, hub, node, bandwidth, latency, {down});
}

// Uniform on a logarithmic scale between lo and lo * factor.
double RandomScale(Random& random, double lo, double factor) {
  double value = lo;
  for (double left = factor; left > 1; left /= 2) value *= 1 + random.Unit();
  return value;
}

// Every pair has a link of its own, and all links differ by up to the factors given here.
Topology RandomMesh(int devices, Random& random) {
  Topology topology = MeshTopology(devices, 1, 1);
  for (Topology::Link& link : topology.links) {
    link.bandwidth = RandomScale(random, 1e7, 64);
    link.latency = RandomScale(random, 1e-6, 32);
  }
  return topology;
}

// A tree of switches; hosts or devices at its leaves, the uplink of a switch slower or faster than
// the NICs below it.
Topology RandomTree(int devices, Random& random) {
  Topology topology;
  const int switches = static_cast<int>(random.Between(1, 1 + devices / 3));
  std::vector<int> hubs;
  for (int i = 0; i < switches; ++i) {
    const int hub = AddNode(topology, absl::StrCat("switch", i), NodeKind::kSwitch);
    if (i > 0) {
      const int parent = hubs[random.Below(hubs.size())];
      AttachByNic(topology, hub, parent, RandomScale(random, 1e7, 256),
                  RandomScale(random, 1e-6, 16));
    }
    hubs.push_back(hub);
  }
  for (int placed = 0, host = 0; placed < devices; ++host) {
    const int hub = hubs[random.Below(hubs.size())];
    const int here = static_cast<int>(random.Between(1, std::min(4, devices - placed)));
    const double nic = RandomScale(random, 1e7, 256);
    const double latency = RandomScale(random, 1e-6, 16);
    if (here == 1) {
      AttachByNic(topology, AddDevice(topology, placed++), hub, nic, latency);
      continue;
    }
    const int node = AddNode(topology, absl::StrCat("host", host), NodeKind::kHost);
    topology.nodes[node].group = absl::StrCat("rack", hub);
    const int bus =
        AddCapacity(topology, absl::StrCat("host", host, ".memory"), RandomScale(random, 1e9, 16));
    topology.nodes[node].memory = {bus};
    // One NIC for both directions, half-duplex.
    const int shared = AddCapacity(topology, absl::StrCat("host", host, ".nic"), nic);
    AddLink(topology, node, hub, nic, latency, {shared});
    AddLink(topology, hub, node, nic, latency, {shared});
    for (int i = 0; i < here; ++i) {
      const int device = AddDevice(topology, placed++);
      topology.nodes[device].host = node;
      topology.nodes[device].message_overhead = random.Unit() * 1e-6;
      AddLink(topology, device, node, 1e10, 1e-7);
      AddLink(topology, node, device, 1e10, 1e-7);
    }
  }
  return topology;
}

}  // namespace

// With more workers than cores a hand-over waits until the kernel runs the other worker, which
// takes the longer the more workers share a core.
double HandoverSeconds(const HostCosts& costs, int workers) {
  if (workers <= costs.cores) return costs.handover;
  return costs.handover_oversubscribed * workers / costs.cores;
}

Topology SingleHostTopology(int workers, const HostCosts& costs) {
  Topology topology;
  topology.source = "declared: one host";
  const int host = AddNode(topology, "host", NodeKind::kHost);
  const int memory = AddCapacity(topology, "memory", costs.memory_bandwidth);
  topology.capacities[memory].cached_bandwidth = costs.cached_bandwidth;
  topology.capacities[memory].cache_bytes = costs.cache_bytes;
  topology.nodes[host].memory = {memory};
  // The links themselves never limit: memory does, which every byte crosses at least twice.
  const double bandwidth = std::max(costs.memory_bandwidth, costs.cached_bandwidth);
  const double half = HandoverSeconds(costs, workers) / 2;
  for (int i = 0; i < workers; ++i) {
    const int device = AddDevice(topology, i);
    topology.nodes[device].host = host;
    topology.nodes[device].message_overhead = costs.message_overhead;
    AddLink(topology, device, host, bandwidth, half);
    AddLink(topology, host, device, bandwidth, half);
  }
  return topology;
}

Topology StarTopology(int devices, double bandwidth, double latency) {
  Topology topology;
  topology.source = "declared: star";
  const int hub = AddNode(topology, "switch", NodeKind::kSwitch);
  for (int i = 0; i < devices; ++i) {
    AttachByNic(topology, AddDevice(topology, i), hub, bandwidth, latency / 2);
  }
  return topology;
}

Topology MeshTopology(int devices, double bandwidth, double latency) {
  Topology topology;
  topology.source = "declared: mesh";
  for (int i = 0; i < devices; ++i) AddDevice(topology, i);
  for (int from = 0; from < devices; ++from) {
    for (int to = 0; to < devices; ++to) {
      if (from != to) AddLink(topology, from, to, bandwidth, latency);
    }
  }
  return topology;
}

Topology TwoRackTopology(int devices_per_rack, double nic_bandwidth, double uplink_bandwidth,
                         double latency) {
  Topology topology;
  topology.source = "declared: two racks";
  const int hubs[] = {AddNode(topology, "rack0", NodeKind::kSwitch),
                      AddNode(topology, "rack1", NodeKind::kSwitch)};
  for (int i = 0; i < 2 * devices_per_rack; ++i) {
    const int rack = i / devices_per_rack;
    const int device = AddDevice(topology, i);
    topology.nodes[device].group = absl::StrCat("rack", rack);
    AttachByNic(topology, device, hubs[rack], nic_bandwidth, latency / 2);
  }
  for (const int rack : {0, 1}) {
    const int uplink = AddCapacity(topology, absl::StrCat("uplink", rack), uplink_bandwidth);
    AddLink(topology, hubs[rack], hubs[1 - rack], uplink_bandwidth, latency, {uplink});
  }
  return topology;
}

// Devices are the leaves, `fanout[0]` switches hang below the first one, and so on; `rates[d]` is
// that of the links from level d down. With a `spread` both directions of a link get rates of their
// own.
Topology SwitchTreeTopology(absl::Span<const int> fanout, absl::Span<const double> rates,
                            double latency, double spread, uint64_t seed) {
  Random random(seed);
  Topology topology;
  topology.source = "declared: tree of switches";
  std::vector<int> level = {AddNode(topology, "switch", NodeKind::kSwitch)};
  int devices = 0;
  for (size_t depth = 0; depth < fanout.size(); ++depth) {
    std::vector<int> next;
    for (const int above : level) {
      for (int i = 0; i < fanout[depth]; ++i) {
        const int node = depth + 1 == fanout.size()
                             ? AddDevice(topology, devices++)
                             : AddNode(topology, absl::StrCat(topology.nodes[above].id, ".", i),
                                       NodeKind::kSwitch);
        topology.nodes[node].group = topology.nodes[above].id;
        const auto rate = [&] { return rates[depth] * (1 + spread * (2 * random.Unit() - 1)); };
        AttachByNic(topology, node, above, rate(), latency / 2);
        topology.links.back().bandwidth = topology.capacities.back().bandwidth = rate();
        next.push_back(node);
      }
    }
    level = std::move(next);
  }
  return topology;
}

// A tree is drawn in half of the cases: most real networks are one, and its parts are shared in
// more ways than those of a mesh or star.
Topology RandomTopology(int devices, uint64_t seed) {
  Random random(seed);
  Topology topology;
  switch (random.Below(4)) {
    case 0:
      topology = RandomMesh(devices, random);
      break;
    case 1:
      topology =
          StarTopology(devices, RandomScale(random, 1e7, 256), RandomScale(random, 1e-6, 64));
      break;
    default:
      topology = RandomTree(devices, random);
      break;
  }
  topology.version = random.Below(1000);
  topology.source = absl::StrCat("random, seed ", seed);
  return topology;
}

}  // namespace syncopate
