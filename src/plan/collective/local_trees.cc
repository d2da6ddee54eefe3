// Trees inside machines that follow the links there.
#include "plan/collective/local_trees.h"

#include <algorithm>
#include <tuple>

#include "base/status.h"
#include "plan/collective/route_loads.h"

namespace syncopate::plan {
namespace {

// Makes the trees of one machine. Workers are indices into it.
class TreePacking {
 public:
  explicit TreePacking(const RouteLoads& routes)
      : routes_(routes), messages_(routes.resources(), 0) {}

  // The edges (parent, child) of the next tree, parents first.
  std::vector<std::pair<size_t, size_t>> Grow(size_t root) {
    std::vector<size_t> depth(routes_.workers(), kOutside);
    depth[root] = 0;
    std::vector<std::pair<size_t, size_t>> edges;
    while (edges.size() + 1 < routes_.workers()) {
      std::tuple<double, size_t, size_t> least;  // worst load, links, depth
      std::pair<size_t, size_t> chosen;
      bool any = false;
      for (size_t i = 0; i < routes_.workers(); ++i) {
        // Start behind the root, so that trees of different roots differ where all else is equal.
        const size_t child = (root + i) % routes_.workers();
        if (depth[child] != kOutside) continue;
        for (size_t parent = 0; parent < routes_.workers(); ++parent) {
          if (depth[parent] == kOutside) continue;
          const std::tuple<double, size_t, size_t> cost = {
              WorstWith(child, parent), routes_.Between(child, parent).size(), depth[parent]};
          if (any && !(cost < least)) continue;
          any = true;
          least = cost;
          chosen = {parent, child};
        }
      }
      const auto [parent, child] = chosen;
      depth[child] = depth[parent] + 1;
      for (const int resource : routes_.Between(child, parent)) {
        ++messages_[static_cast<size_t>(resource)];
      }
      edges.push_back(chosen);
    }
    return edges;
  }

 private:
  static constexpr size_t kOutside = ~size_t{0};

  // The worst of what the edge loads, on its way to the root, once it is in a tree.
  double WorstWith(size_t child, size_t parent) const {
    double worst = 0;
    for (const int resource : routes_.Between(child, parent)) {
      worst = std::max(worst, (messages_[static_cast<size_t>(resource)] + 1) *
                                  routes_.seconds_per_byte(resource));
    }
    return worst;
  }

  const RouteLoads& routes_;
  std::vector<int> messages_;  // by resource
};

}  // namespace

absl::StatusOr<std::vector<PlannerOptions::LocalTree>> PackLocalTrees(
    const Topology& topology, absl::Span<const int> placement,
    const std::vector<std::vector<int>>& machines) {
  std::vector<PlannerOptions::LocalTree> trees;
  for (const std::vector<int>& machine : machines) {
    SYNCOPATE_ASSIGN_OR_RETURN(const RouteLoads routes,
                               RouteLoads::Of(topology, placement, machine));
    TreePacking packing(routes);
    for (size_t root = 0; root < machine.size(); ++root) {
      PlannerOptions::LocalTree& tree = trees.emplace_back();
      tree.root = machine[root];
      for (const auto& [parent, child] : packing.Grow(root)) {
        tree.edges.emplace_back(machine[parent], machine[child]);
      }
    }
  }
  return trees;
}

}  // namespace syncopate::plan
