#include "plan/forest/tree_groups.h"

#include <algorithm>
#include <utility>

namespace syncopate::plan {
namespace {

// A link between two nodes, seen from one of them; -1 where a direction has none.
struct Neighbour {
  int node = -1;
  int out = -1;
  int in = -1;
};

using Neighbours = std::vector<std::vector<Neighbour>>;  // by node

// The neighbours of each node. Nothing if two links lead from one node to the same other one: the
// network is then not a tree.
std::optional<Neighbours> FindNeighbours(const Topology& topology) {
  Neighbours neighbours(topology.nodes.size());
  for (size_t i = 0; i < topology.links.size(); ++i) {
    const Topology::Link& link = topology.links[i];
    neighbours[link.from].push_back({link.to, static_cast<int>(i), -1});
    neighbours[link.to].push_back({link.from, -1, static_cast<int>(i)});
  }
  for (std::vector<Neighbour>& all : neighbours) {
    std::stable_sort(all.begin(), all.end(),
                     [](const Neighbour& a, const Neighbour& b) { return a.node < b.node; });
    size_t kept = 0;
    for (const Neighbour& each : all) {
      if (kept == 0 || all[kept - 1].node != each.node) {
        all[kept++] = each;
        continue;
      }
      Neighbour& same = all[kept - 1];
      int& direction = each.out >= 0 ? same.out : same.in;
      if (direction >= 0) return std::nullopt;
      direction = std::max(each.out, each.in);
    }
    all.resize(kept);
  }
  return neighbours;
}

// The nodes that a start is joined to, as a tree that hangs on it.
struct NodeTree {
  std::vector<int> order;     // parents first
  std::vector<Neighbour> up;  // by node: the parent
  std::vector<int> depth;     // by node; -1: not in the tree
  std::vector<int> members;   // by node: how many are there and below
};

// The tree that hangs on a node. Nothing if there is a cycle.
std::optional<NodeTree> Hang(const Neighbours& neighbours, int start,
                             absl::Span<const std::vector<int>> members_at) {
  NodeTree tree;
  tree.up.resize(neighbours.size());
  tree.depth.assign(neighbours.size(), -1);
  tree.members.assign(neighbours.size(), 0);
  tree.order = {start};
  tree.depth[start] = 0;
  for (size_t next = 0; next < tree.order.size(); ++next) {
    const int node = tree.order[next];
    for (const Neighbour& to : neighbours[node]) {
      if (to.node == tree.up[node].node) continue;
      if (to.node == node || tree.depth[to.node] >= 0) return std::nullopt;
      tree.depth[to.node] = tree.depth[node] + 1;
      tree.up[to.node] = {node, to.in, to.out};
      tree.order.push_back(to.node);
    }
  }
  for (size_t i = tree.order.size(); i-- > 0;) {
    const int node = tree.order[i];
    tree.members[node] += static_cast<int>(members_at[node].size());
    if (i > 0) tree.members[tree.up[node].node] += tree.members[node];
  }
  return tree;
}

// A centroid: a node from which no neighbour leads to more than half of the members.
int MiddleOf(const Neighbours& neighbours, const NodeTree& tree, int members) {
  int middle = tree.order[0];
  for (bool moved = true; moved;) {
    moved = false;
    for (const Neighbour& next : neighbours[middle]) {
      if (next.node == tree.up[middle].node || 2 * tree.members[next.node] <= members) continue;
      middle = next.node;
      moved = true;
      break;
    }
  }
  return middle;
}

// Whether the routes that the topology names are the only ways without detours.
bool RoutesAreStraight(const Topology& topology, const NodeTree& tree) {
  for (const Topology::Route& route : topology.routes) {
    if (tree.depth[route.from] < 0) continue;
    int a = route.from;
    int b = route.to;
    size_t distance = 0;
    for (; a != b; ++distance) {
      int& deeper = tree.depth[a] >= tree.depth[b] ? a : b;
      deeper = tree.up[deeper].node;
    }
    if (route.links.size() != distance) return false;
  }
  return true;
}

// By link, the resources of the packing network that it loads.
std::vector<std::vector<int>> ResourcesOfLinks(const Topology& topology,
                                               const PackingNetwork& network) {
  std::vector<std::vector<int>> of_links(topology.links.size());
  std::vector<std::vector<int>> of_capacities(topology.capacities.size());
  for (size_t i = 0; i < network.resources().size(); ++i) {
    const NetworkPart part = network.resources()[i].part;
    (part.is_link ? of_links : of_capacities)[part.index].push_back(static_cast<int>(i));
  }
  for (size_t i = 0; i < topology.links.size(); ++i) {
    for (const int capacity : topology.links[i].capacities) {
      of_links[i].insert(of_links[i].end(), of_capacities[capacity].begin(),
                         of_capacities[capacity].end());
    }
  }
  return of_links;
}

void Append(const std::vector<int>& more, std::vector<int>& all) {
  all.insert(all.end(), more.begin(), more.end());
}

}  // namespace

std::optional<std::vector<TreeGroup>> FindTreeGroups(const Topology& topology,
                                                     absl::Span<const int> placement,
                                                     const PackingNetwork& network) {
  if (network.size() < 2) return std::nullopt;
  const std::optional<Neighbours> neighbours = FindNeighbours(topology);
  if (!neighbours.has_value()) return std::nullopt;
  std::vector<std::vector<int>> members_at(topology.nodes.size());
  for (int member = 0; member < network.size(); ++member) {
    members_at[placement[network.ranks()[member]]].push_back(member);
  }
  std::optional<NodeTree> tree = Hang(*neighbours, placement[network.ranks()[0]], members_at);
  if (!tree.has_value() || tree->members[tree->order[0]] != network.size()) return std::nullopt;
  // Seen from the middle of the tree, all groups are as small as can be.
  tree = Hang(*neighbours, MiddleOf(*neighbours, *tree, network.size()), members_at);
  if (!RoutesAreStraight(topology, *tree)) return std::nullopt;

  const std::vector<std::vector<int>> resources = ResourcesOfLinks(topology, network);
  std::vector<TreeGroup> groups;  // children before parents, until it is turned around
  std::vector<std::vector<int>> groups_at(topology.nodes.size());
  for (size_t i = tree->order.size(); i-- > 0;) {
    const int node = tree->order[i];
    std::vector<int>& here = groups_at[node];
    for (const int member : members_at[node]) {
      here.push_back(static_cast<int>(groups.size()));
      groups.emplace_back().member = member;
    }
    if (here.empty()) continue;
    int group = here[0];
    if (here.size() > 1) {
      group = static_cast<int>(groups.size());
      for (const int child : here) groups[child].parent = group;
      groups.emplace_back().children = here;
    }
    if (i == 0) break;
    const Neighbour& up = tree->up[node];
    if (up.out < 0 || up.in < 0) return std::nullopt;
    Append(resources[up.out], groups[group].out);
    Append(resources[up.in], groups[group].in);
    groups_at[up.node].push_back(group);
  }
  const int last = static_cast<int>(groups.size()) - 1;
  std::reverse(groups.begin(), groups.end());
  for (TreeGroup& group : groups) {
    if (group.parent >= 0) group.parent = last - group.parent;
    for (int& child : group.children) child = last - child;
  }
  return groups;
}

}  // namespace syncopate::plan
