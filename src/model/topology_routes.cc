#include "model/topology_routes.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <queue>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"

namespace syncopate {
namespace {

// Latencies are compared in whole picoseconds, so that the order of additions does not decide
// between equal paths. The limits on latency and nodes keep the sum within 63 bits.
int64_t Picoseconds(double seconds) { return std::llround(seconds * 1e12); }

// Devices are the ends of routes and pass nothing on: a GPU is not a router.
bool PassesOn(const Topology& topology, int node) {
  return topology.nodes[node].kind != NodeKind::kDevice;
}

// For each node, the nodes at the other ends of its links: out of it, or into it.
std::vector<std::vector<int>> Neighbours(const Topology& topology, bool out) {
  std::vector<std::vector<int>> neighbours(topology.nodes.size());
  for (const Topology::Link& link : topology.links) {
    const int near = out ? link.from : link.to;
    const int far = out ? link.to : link.from;
    neighbours[near].push_back(far);
  }
  return neighbours;
}

// Marks all nodes that a walk from `start` along `neighbours` meets.
std::vector<bool> Meets(const Topology& topology, const std::vector<std::vector<int>>& neighbours,
                        int start) {
  std::vector<bool> met(topology.nodes.size(), false);
  std::vector<int> todo = {start};
  met[start] = true;
  while (!todo.empty()) {
    const int node = todo.back();
    todo.pop_back();
    if (node != start && !PassesOn(topology, node)) continue;
    for (const int next : neighbours[node]) {
      if (met[next]) continue;
      met[next] = true;
      todo.push_back(next);
    }
  }
  return met;
}

}  // namespace

Routes::Routes(const Topology& topology)
    : topology_(topology), links_out_(topology.nodes.size()), links_in_(topology.nodes.size()) {
  for (size_t i = 0; i < topology.links.size(); ++i) {
    links_out_[topology.links[i].from].push_back(static_cast<int>(i));
    links_in_[topology.links[i].to].push_back(static_cast<int>(i));
  }
  for (size_t i = 0; i < topology.routes.size(); ++i) {
    named_[{topology.routes[i].from, topology.routes[i].to}] = static_cast<int>(i);
  }
}

// Devices are at the ends of routes only. Without them the paths are few, and all devices of a host
// or switch share those from it.
const std::vector<int>& Routes::LastLinks(int source) {
  auto [found, is_new] = last_by_source_.try_emplace(source);
  std::vector<int>& last = found->second;
  if (!is_new) return last;
  last.assign(topology_.nodes.size(), -1);
  // Dijkstra's algorithm. Of two paths of one latency the one with fewer links is taken, and of
  // those the first found, which depends on the order of the links only: all workers get the same
  // routes.
  using Key = std::pair<Length, int>;  // and node
  std::vector<Length> best(topology_.nodes.size(), {INT64_MAX, 0});
  std::priority_queue<Key, std::vector<Key>, std::greater<Key>> queue;
  best[source] = {0, 0};
  queue.emplace(best[source], source);
  while (!queue.empty()) {
    const auto [length, node] = queue.top();
    queue.pop();
    // A shorter way to the node was found after this entry was queued.
    if (best[node] != length) continue;
    for (const int index : links_out_[node]) {
      const Topology::Link& link = topology_.links[index];
      const Length reached = {length.first + Picoseconds(link.latency), length.second + 1};
      if (!PassesOn(topology_, link.to) || reached >= best[link.to]) continue;
      best[link.to] = reached;
      last[link.to] = index;
      queue.emplace(reached, link.to);
    }
  }
  return last;
}

// Follows the last links back from `to`; the longest length there is if they do not lead to `from`.
Routes::Length Routes::LengthOf(const std::vector<int>& last, int from, int to) const {
  Length length = {0, 0};
  for (int at = to; at != from; at = topology_.links[last[at]].from) {
    if (last[at] < 0) return {INT64_MAX, 0};
    length.first += Picoseconds(topology_.links[last[at]].latency);
    ++length.second;
  }
  return length;
}

absl::StatusOr<std::vector<int>> Routes::Between(int from, int to) {
  if (from == to) return std::vector<int>();
  if (const auto named = named_.find({from, to}); named != named_.end()) {
    return topology_.routes[named->second].links;
  }
  // A route is a link out of the device, a path among hosts and switches, and a link into the other
  // device; or one link that joins the two devices. All such pairs of links are compared: there are
  // few, since a device has a link or two.
  Length best = {INT64_MAX, 0};
  int best_out = -1;
  int best_in = -1;
  for (const int out : links_out_[from]) {
    const Topology::Link& first = topology_.links[out];
    if (first.to == to) {
      const Length length = {Picoseconds(first.latency), 1};
      if (length < best) best = length, best_out = out, best_in = -1;
    }
    if (!PassesOn(topology_, first.to)) continue;
    const std::vector<int>& last = LastLinks(first.to);
    for (const int in : links_in_[to]) {
      const Topology::Link& final_link = topology_.links[in];
      if (!PassesOn(topology_, final_link.from)) continue;
      Length length = LengthOf(last, first.to, final_link.from);
      if (length.first == INT64_MAX) continue;
      length.first += Picoseconds(first.latency) + Picoseconds(final_link.latency);
      length.second += 2;
      if (length < best) best = length, best_out = out, best_in = in;
    }
  }
  if (best_out < 0) {
    return absl::FailedPreconditionError(absl::StrCat("there is no route from device \"",
                                                      topology_.nodes[from].id, "\" to device \"",
                                                      topology_.nodes[to].id, "\""));
  }
  // Put together from the end to the beginning, because the paths are known by their last links.
  std::vector<int> route;
  if (best_in >= 0) {
    route.push_back(best_in);
    const int entry = topology_.links[best_out].to;
    const std::vector<int>& last = LastLinks(entry);
    for (int at = topology_.links[best_in].from; at != entry; at = topology_.links[last[at]].from) {
      route.push_back(last[at]);
    }
  }
  route.push_back(best_out);
  std::reverse(route.begin(), route.end());
  return route;
}

absl::Status CheckReachability(const Topology& topology) {
  const std::vector<int> devices = Devices(topology);
  const std::vector<std::vector<int>> out = Neighbours(topology, true);
  // In the usual case all devices reach some switch or host and are reached from it. Then any two
  // have a route through it, which one walk in each direction shows.
  for (size_t node = 0; node < topology.nodes.size(); ++node) {
    const int pivot = static_cast<int>(node);
    if (!PassesOn(topology, pivot) || out[node].empty()) continue;
    const std::vector<bool> down = Meets(topology, out, pivot);
    const std::vector<bool> up = Meets(topology, Neighbours(topology, false), pivot);
    if (std::all_of(devices.begin(), devices.end(),
                    [&](int device) { return up[device] && down[device]; })) {
      return absl::OkStatus();
    }
    break;
  }
  // Else every device is looked at by itself. Routes that the topology names count too: they were
  // checked link by link.
  absl::flat_hash_set<std::pair<int, int>> named;
  for (const Topology::Route& route : topology.routes) named.emplace(route.from, route.to);
  for (const int from : devices) {
    const std::vector<bool> met = Meets(topology, out, from);
    for (const int to : devices) {
      if (met[to] || named.contains({from, to})) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "links: there is no route from device \"", topology.nodes[from].id, "\" to device \"",
          topology.nodes[to].id, "\" (hosts and switches pass messages on, devices do not)"));
    }
  }
  return absl::OkStatus();
}

}  // namespace syncopate
