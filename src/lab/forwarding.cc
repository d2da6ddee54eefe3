#include "lab/forwarding.h"

#include <deque>

#include "absl/strings/str_cat.h"

namespace syncopate::lab {

absl::StatusOr<Forwarding> ComputeForwarding(const Spec& spec) {
  const size_t nodes = spec.nodes.size();
  std::vector<std::vector<int>> links_of(nodes);
  for (size_t i = 0; i < spec.links.size(); ++i) {
    links_of[spec.links[i].a].push_back(static_cast<int>(i));
    links_of[spec.links[i].b].push_back(static_cast<int>(i));
  }
  Forwarding forwarding;
  forwarding.link.assign(nodes, std::vector<int>(nodes, -1));
  const std::vector<int> hosts = Hosts(spec);
  for (const int target : hosts) {
    // Breadth first from the target: each node sends to the neighbour from which it was reached
    // first.
    std::deque<int> reached = {target};
    while (!reached.empty()) {
      const int here = reached.front();
      reached.pop_front();
      if (here != target && spec.nodes[here].is_host) continue;  // hosts pass nothing on
      for (const int index : links_of[here]) {
        const int next = OtherEnd(spec.links[index], here);
        if (next == target || forwarding.link[next][target] >= 0) continue;
        forwarding.link[next][target] = index;
        reached.push_back(next);
      }
    }
    for (const int source : hosts) {
      if (source == target || forwarding.link[source][target] >= 0) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "there is no way from ", spec.nodes[source].name, " to ", spec.nodes[target].name,
          " through switches; join them by a [[link]], or their switches by parent"));
    }
  }
  return forwarding;
}

std::vector<int> Path(const Spec& spec, const Forwarding& forwarding, int from, int to) {
  std::vector<int> path;
  while (from != to) {
    path.push_back(forwarding.link[from][to]);
    from = OtherEnd(spec.links[path.back()], from);
  }
  return path;
}

}  // namespace syncopate::lab
