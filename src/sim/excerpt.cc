#include "sim/excerpt.h"

#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace syncopate::sim {
namespace {

// The place of each in sorted order.
std::map<int, int> Number(const std::set<int>& numbers) {
  std::map<int, int> places;
  for (const int number : numbers) places.emplace(number, static_cast<int>(places.size()));
  return places;
}

std::vector<int> Renumber(const std::vector<int>& numbers, const std::map<int, int>& places) {
  std::vector<int> renumbered;
  for (const int number : numbers) renumbered.push_back(places.at(number));
  return renumbered;
}

}  // namespace

absl::StatusOr<Excerpt> ExcerptOf(const Topology& topology, Routes& routes,
                                  const std::vector<int>& devices) {
  std::map<std::pair<int, int>, std::vector<int>> ways;
  std::set<int> nodes(devices.begin(), devices.end()), links, capacities;
  for (const int from : nodes) {
    for (const int to : std::set<int>(devices.begin(), devices.end())) {
      if (from == to) continue;
      SYNCOPATE_ASSIGN_OR_RETURN(ways[std::pair(from, to)], routes.Between(from, to));
    }
  }
  for (const auto& [pair, way] : ways) links.insert(way.begin(), way.end());
  for (const int link : links) {
    const Topology::Link& each = topology.links[static_cast<size_t>(link)];
    nodes.insert({each.from, each.to});
    capacities.insert(each.capacities.begin(), each.capacities.end());
  }
  for (const int node : std::set<int>(nodes)) {
    const int host = topology.nodes[static_cast<size_t>(node)].host;
    if (host >= 0) nodes.insert(host);
  }
  for (const int node : nodes) {
    const std::vector<int>& memory = topology.nodes[static_cast<size_t>(node)].memory;
    capacities.insert(memory.begin(), memory.end());
  }
  const std::map<int, int> node_at = Number(nodes), link_at = Number(links),
                           capacity_at = Number(capacities);
  Excerpt excerpt;
  Topology& part = excerpt.topology;
  part.shared_cores = topology.shared_cores;
  for (const int index : nodes) {
    Topology::Node node = topology.nodes[static_cast<size_t>(index)];
    node.id = absl::StrCat("n", part.nodes.size());
    node.group.clear();
    if (node.host >= 0) node.host = node_at.at(node.host);
    node.memory = Renumber(node.memory, capacity_at);
    part.nodes.push_back(std::move(node));
  }
  for (const int index : capacities) {
    part.capacities.push_back(topology.capacities[static_cast<size_t>(index)]);
    part.capacities.back().id = absl::StrCat("c", part.capacities.size());
  }
  for (const int index : links) {
    Topology::Link link = topology.links[static_cast<size_t>(index)];
    link.id = absl::StrCat("l", part.links.size());
    link.from = node_at.at(link.from);
    link.to = node_at.at(link.to);
    link.capacities = Renumber(link.capacities, capacity_at);
    part.links.push_back(std::move(link));
  }
  for (const auto& [pair, way] : ways) {
    part.routes.push_back(
        {node_at.at(pair.first), node_at.at(pair.second), Renumber(way, link_at)});
  }
  excerpt.devices = Renumber(devices, node_at);
  return excerpt;
}

}  // namespace syncopate::sim
