// The network that a lab's file declares, as the planners see networks.
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lab/forwarding.h"
#include "lab/lab.h"
#include "lab/wiring.h"

namespace syncopate::lab {
namespace {

// The rate of links that are not shaped, in bit/s: about what a core moves between namespaces.
constexpr double kUnshapedBits = 10e9;
// The latency of a hop: a veth pair and a wake-up.
constexpr double kHopSeconds = 25e-6;
constexpr double kBitsPerByte = 8;
// BBR paces what it sends: where there is more to be had than it has seen lately, by its probes of a quarter
// more. Others send all that their window allows, which is as quick as the line.
constexpr double kBbrProbe = 1.25;

double PayloadBytes(int64_t rate) {
  return (rate > 0 ? static_cast<double>(rate) : kUnshapedBits) / kBitsPerByte * kPayloadShare;
}

Spec WithoutBystanders(const Spec& whole) {
  Spec spec = whole;
  spec.nodes.clear();
  spec.links.clear();
  spec.flows.clear();
  std::vector<int> index(whole.nodes.size(), -1);
  for (size_t i = 0; i < whole.nodes.size(); ++i) {
    if (whole.nodes[i].bystander) continue;
    index[i] = static_cast<int>(spec.nodes.size());
    spec.nodes.push_back(whole.nodes[i]);
  }
  for (Link link : whole.links) {
    link.a = index[link.a];
    link.b = index[link.b];
    if (link.a >= 0 && link.b >= 0) spec.links.push_back(link);
  }
  return spec;
}

// The switch that a host hangs on, if it is one.
std::string GroupOf(const Spec& spec, int host) {
  for (const Link& link : spec.links) {
    if (link.a != host && link.b != host) continue;
    const Node& other = spec.nodes[OtherEnd(link, host)];
    if (!other.is_host) return other.name;
  }
  return "";
}

void AddDirection(const Spec& spec, int from, int to, int64_t rate, double delay,
                  Topology& topology) {
  Topology::Link link;
  link.id = absl::StrCat(spec.nodes[from].name, ">", spec.nodes[to].name);
  link.from = from;
  link.to = to;
  link.bandwidth = PayloadBytes(rate);
  link.latency = delay + kHopSeconds;
  Topology::Capacity capacity;
  capacity.id = link.id;
  if (spec.nodes[from].is_host && !spec.nodes[to].is_host) {
    capacity.id = absl::StrCat(spec.nodes[from].name, ".up");
  } else if (spec.nodes[to].is_host && !spec.nodes[from].is_host) {
    capacity.id = absl::StrCat(spec.nodes[to].name, ".down");
  }
  capacity.bandwidth = link.bandwidth;
  const bool taken =
      std::any_of(topology.capacities.begin(), topology.capacities.end(),
                  [&](const Topology::Capacity& each) { return each.id == capacity.id; });
  if (taken) capacity.id = link.id;  // a host's second link
  link.capacities = {static_cast<int>(topology.capacities.size())};
  topology.capacities.push_back(std::move(capacity));
  topology.links.push_back(std::move(link));
}

}  // namespace

Topology DeclaredTopology(const Spec& whole) {
  const Spec spec = WithoutBystanders(whole);
  Topology topology;
  topology.source = absl::StrCat("declared: lab ", spec.name);
  for (size_t i = 0; i < spec.nodes.size(); ++i) {
    Topology::Node node;
    node.id = spec.nodes[i].name;
    node.kind = spec.nodes[i].is_host ? NodeKind::kDevice : NodeKind::kSwitch;
    if (spec.nodes[i].is_host) node.group = GroupOf(spec, static_cast<int>(i));
    topology.nodes.push_back(std::move(node));
  }
  for (const Link& link : spec.links) {
    AddDirection(spec, link.a, link.b, link.rate_forward, link.delay, topology);
    AddDirection(spec, link.b, link.a, link.rate_back, link.delay, topology);
  }
  // In a tree there is one way; elsewhere the lab's own choice is part of what it is.
  if (spec.links.size() < spec.nodes.size()) return topology;
  const Forwarding forwarding = ComputeForwarding(spec).value();
  for (const int from : Hosts(spec)) {
    for (const int to : Hosts(spec)) {
      if (from == to) continue;
      Topology::Route route;
      route.from = from;
      route.to = to;
      int here = from;
      for (const int index : Path(spec, forwarding, from, to)) {
        route.links.push_back(2 * index + (spec.links[index].a == here ? 0 : 1));
        here = OtherEnd(spec.links[index], here);
      }
      topology.routes.push_back(std::move(route));
    }
  }
  return topology;
}

std::vector<DeclaredBurst> DeclaredBursts(const Spec& whole) {
  const bool paced = whole.congestion.empty() || whole.congestion == "bbr";
  std::vector<DeclaredBurst> bursts;
  for (const Link& link : WithoutBystanders(whole).links) {
    for (const int64_t rate : {link.rate_forward, link.rate_back}) {
      DeclaredBurst burst;
      if (rate > 0) {
        burst.bytes = static_cast<double>(BurstBytes(rate)) * kPayloadShare;
        burst.bandwidth =
            paced ? kBbrProbe * PayloadBytes(rate) : std::max(PayloadBytes(rate), PayloadBytes(0));
      }
      bursts.push_back(burst);
    }
  }
  return bursts;
}

}  // namespace syncopate::lab
