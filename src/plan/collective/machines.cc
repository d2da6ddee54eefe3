// What planners that know two levels share.
#include "plan/collective/machines.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"

namespace syncopate::plan {

std::vector<std::vector<int>> MachinesOf(const CollectiveRequest& request,
                                         const PlannerOptions& options) {
  if (!options.levels.empty()) return options.levels[0];
  std::vector<std::vector<int>> machines;
  for (const int rank : request.active) machines.push_back({rank});
  return machines;
}

uint32_t LargestOf(const std::vector<std::vector<int>>& machines) {
  size_t largest = 1;
  for (const std::vector<int>& machine : machines) largest = std::max(largest, machine.size());
  return static_cast<uint32_t>(largest);
}

std::vector<int> HoldersOf(const std::vector<std::vector<int>>& machines, uint32_t share) {
  std::vector<int> holders;
  for (const std::vector<int>& machine : machines)
    holders.push_back(machine[share % machine.size()]);
  return holders;
}

std::vector<RankEdge> LocalTreeOf(const std::vector<int>& machine, size_t root,
                                  const PlannerOptions& options) {
  std::vector<RankEdge> edges;
  for (const PlannerOptions::LocalTree& tree : options.local_trees) {
    if (tree.root != machine[root]) continue;
    absl::flat_hash_map<int, int> depth_of = {{tree.root, 0}};
    for (const auto& [parent, child] : tree.edges) {
      const int depth = depth_of[parent] + 1;
      depth_of[child] = depth;
      edges.push_back({parent, child, depth});
    }
    return edges;
  }
  // Start behind the root, so that not all members send to the same one first.
  for (size_t i = 1; i < machine.size(); ++i) {
    edges.push_back({machine[root], machine[(root + i) % machine.size()], 1});
  }
  return edges;
}

void AllReduceAround(const std::vector<int>& ranks, int stage, uint32_t first, Pipeline* pipeline) {
  const size_t size = ranks.size();
  for (size_t round = 0; round + 1 < size; ++round) {
    for (size_t p = 0; p < size; ++p) {
      const int next = ranks[(p + 1) % size];
      const size_t collected = (p + 2 * size - 1 - round) % size;
      const size_t complete = (p + size - round) % size;
      pipeline->MoveReduce(stage + static_cast<int>(round), ranks[p], next,
                           Data(first + static_cast<uint32_t>(collected)));
      pipeline->Move(stage + static_cast<int>(size - 1 + round), ranks[p], next,
                     Data(first + static_cast<uint32_t>(complete)));
    }
  }
}

}  // namespace syncopate::plan
