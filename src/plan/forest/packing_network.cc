#include "plan/forest/packing_network.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/topology_routes.h"

namespace syncopate::plan {
namespace {

// Spreads the bits of an edge's number, so that sums tell sets of edges apart.
uint64_t Mixed(uint64_t value) {
  value += 0x9e3779b97f4a7c15;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

}  // namespace

double RateOf(const Topology& topology, NetworkPart part) {
  const size_t index = static_cast<size_t>(part.index);
  return part.is_link ? topology.links[index].bandwidth : topology.capacities[index].bandwidth;
}

const std::string& NameOf(const Topology& topology, NetworkPart part) {
  const size_t index = static_cast<size_t>(part.index);
  return part.is_link ? topology.links[index].id : topology.capacities[index].id;
}

void PackingNetwork::AddResource(const Topology& topology, NetworkPart part) {
  resources_.push_back({part, RateOf(topology, part), {part}});
}

absl::StatusOr<PackingNetwork> PackingNetwork::Make(const Topology& topology,
                                                    absl::Span<const int> placement,
                                                    absl::Span<const int> ranks) {
  PackingNetwork network;
  network.ranks_.assign(ranks.begin(), ranks.end());
  for (const int rank : ranks) {
    if (rank < 0 || static_cast<size_t>(rank) >= placement.size() ||
        placement[static_cast<size_t>(rank)] < 0 ||
        static_cast<size_t>(placement[static_cast<size_t>(rank)]) >= topology.nodes.size()) {
      return absl::InvalidArgumentError(absl::StrCat("worker ", rank, " has no device"));
    }
  }
  // First all links, then all capacities; MergeResources() drops what is never loaded.
  for (size_t i = 0; i < topology.links.size(); ++i) {
    network.AddResource(topology, {true, static_cast<int>(i)});
    network.link_ends_.emplace_back(topology.links[i].from, topology.links[i].to);
  }
  for (size_t i = 0; i < topology.capacities.size(); ++i) {
    network.AddResource(topology, {false, static_cast<int>(i)});
  }
  network.nodes_ = topology.nodes.size();
  network.capacities_ = topology.capacities.size();
  const int links = static_cast<int>(topology.links.size());
  Routes routes(topology);
  const size_t size = network.ranks_.size();
  network.begin_.reserve(size * size + 1);
  network.latency_.reserve(size * size);
  for (const int from : ranks) {
    for (const int to : ranks) {
      network.begin_.push_back(network.loads_.size());
      const int source = placement[static_cast<size_t>(from)];
      const int target = placement[static_cast<size_t>(to)];
      absl::StatusOr<std::vector<int>> route = routes.Between(source, target);
      if (!route.ok()) return absl::InvalidArgumentError(route.status().message());
      double latency = topology.nodes[static_cast<size_t>(source)].message_overhead +
                       topology.nodes[static_cast<size_t>(target)].message_overhead;
      for (const int index : *route) {
        const Topology::Link& link = topology.links[static_cast<size_t>(index)];
        latency += link.latency;
        network.loads_.push_back(index);
        for (const int capacity : link.capacities) network.loads_.push_back(links + capacity);
      }
      network.latency_.push_back(latency);
    }
  }
  network.begin_.push_back(network.loads_.size());
  network.MergeResources();
  return network;
}

void PackingNetwork::MergeResources() {
  // The set of edges that load a resource, as a sum of 64-bit hashes: equal sets have equal sums,
  // and different sets almost certainly different ones.
  std::vector<uint64_t> loaded_by(resources_.size(), 0);
  for (size_t edge = 0; edge + 1 < begin_.size(); ++edge) {
    const uint64_t hash = Mixed(edge);
    for (size_t i = begin_[edge]; i < begin_[edge + 1]; ++i) {
      loaded_by[static_cast<size_t>(loads_[i])] += hash;
    }
  }
  absl::flat_hash_map<uint64_t, int> kept;
  std::vector<PackingResource> resources;
  std::vector<int> becomes(resources_.size(), -1);  // -1: dropped
  for (size_t i = 0; i < resources_.size(); ++i) {
    if (loaded_by[i] == 0) continue;
    const auto [found, is_new] = kept.try_emplace(loaded_by[i], static_cast<int>(resources.size()));
    if (is_new) {
      resources.push_back(resources_[i]);
      becomes[i] = found->second;
      continue;
    }
    PackingResource& same = resources[static_cast<size_t>(found->second)];
    same.parts.push_back(resources_[i].part);
    if (resources_[i].rate < same.rate)
      same.part = resources_[i].part, same.rate = resources_[i].rate;
  }
  resources_ = std::move(resources);
  size_t next = 0;
  for (size_t edge = 0; edge + 1 < begin_.size(); ++edge) {
    const size_t end = begin_[edge + 1];
    size_t read = begin_[edge];
    begin_[edge] = next;
    for (; read < end; ++read) {
      const int resource = becomes[static_cast<size_t>(loads_[read])];
      if (resource >= 0) loads_[next++] = resource;
    }
    if (edge + 2 == begin_.size()) begin_[edge + 1] = next;
  }
  loads_.resize(next);
}

absl::Status PackingNetwork::UpdateRates(const Topology& topology) {
  bool same = topology.nodes.size() == nodes_ && topology.links.size() == link_ends_.size() &&
              topology.capacities.size() == capacities_;
  for (size_t i = 0; same && i < link_ends_.size(); ++i) {
    same = link_ends_[i] == std::make_pair(topology.links[i].from, topology.links[i].to);
  }
  if (!same) return absl::FailedPreconditionError("the topology has another shape");
  for (PackingResource& resource : resources_) {
    resource.rate = std::numeric_limits<double>::infinity();
    for (const NetworkPart part : resource.parts) {
      const double rate = RateOf(topology, part);
      if (rate < resource.rate) resource.part = part, resource.rate = rate;
    }
  }
  return absl::OkStatus();
}

// A resource with a price limits the plan, so only the others can be made slower without loss.
PackingNetwork PackingNetwork::WithHeadroom(absl::Span<const double> prices, double part) const {
  PackingNetwork network = *this;
  for (size_t i = 0; i < resources_.size(); ++i) {
    if (prices[i] * resources_[i].rate < 1e-6) network.resources_[i].rate *= part;
  }
  return network;
}

PackingNetwork PackingNetwork::Joined(absl::Span<const int> becomes) const {
  PackingNetwork joined = *this;
  joined.link_ends_.clear();  // no topology has this shape
  joined.nodes_ = 0;
  joined.resources_.clear();
  for (size_t i = 0; i < resources_.size(); ++i) {
    const size_t number = static_cast<size_t>(becomes[i]);
    if (joined.resources_.size() <= number) joined.resources_.resize(number + 1);
    PackingResource& resource = joined.resources_[number];
    if (resource.parts.empty()) resource.part = resources_[i].part;
    resource.rate += resources_[i].rate;
    resource.parts.insert(resource.parts.end(), resources_[i].parts.begin(),
                          resources_[i].parts.end());
  }
  for (int& resource : joined.loads_) resource = becomes[static_cast<size_t>(resource)];
  return joined;
}

EdgeCosts PackingNetwork::CostsAt(absl::Span<const double> prices) const {
  EdgeCosts costs(size());
  for (int from = 0; from < size(); ++from) {
    for (int to = 0; to < size(); ++to) {
      if (from == to) continue;
      double cost = 0;
      for (const int resource : Loads(from, to)) cost += prices[static_cast<size_t>(resource)];
      costs.set(from, to, cost);
    }
  }
  return costs;
}

}  // namespace syncopate::plan
