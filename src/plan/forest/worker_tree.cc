#include "plan/forest/worker_tree.h"

#include <algorithm>

namespace syncopate::plan {

std::vector<std::pair<int, int>> EdgesFromRoot(const WorkerTree& tree) {
  std::vector<std::vector<int>> children(tree.parent.size());
  size_t members = 0;
  for (size_t worker = 0; worker < tree.parent.size(); ++worker) {
    const int parent = tree.parent[worker];
    if (parent < 0 || static_cast<int>(worker) == tree.root) continue;
    children[static_cast<size_t>(parent)].push_back(static_cast<int>(worker));
    ++members;
  }
  std::vector<std::pair<int, int>> edges;
  std::vector<int> level = {tree.root};
  while (!level.empty()) {
    std::vector<int> next;
    for (const int parent : level) {
      for (const int child : children[static_cast<size_t>(parent)]) {
        edges.emplace_back(parent, child);
        next.push_back(child);
      }
    }
    level = std::move(next);
  }
  if (edges.size() != members) edges.clear();  // some worker hangs on a cycle
  return edges;
}

int DepthOf(const WorkerTree& tree) {
  std::vector<int> depth(tree.parent.size(), 0);
  int most = 0;
  for (const auto& [parent, child] : EdgesFromRoot(tree)) {
    depth[static_cast<size_t>(child)] = depth[static_cast<size_t>(parent)] + 1;
    most = std::max(most, depth[static_cast<size_t>(child)]);
  }
  return most;
}

EdgeCosts EdgeCosts::Reversed() const {
  EdgeCosts reversed(workers_);
  for (int from = 0; from < workers_; ++from) {
    for (int to = 0; to < workers_; ++to) reversed.set(to, from, at(from, to));
  }
  return reversed;
}

WorkerTree Flatten(const WorkerTree& tree, const EdgeCosts& costs, double slack) {
  WorkerTree flat = tree;
  std::vector<int> ancestors;
  for (const auto& [parent, child] : EdgesFromRoot(tree)) {
    // The ancestors are those in the new tree, in which all workers above are in place already.
    ancestors.clear();
    for (int at = parent; at != tree.root; at = flat.parent[at]) ancestors.push_back(at);
    ancestors.push_back(tree.root);
    const double most = costs.at(parent, child) * (1 + slack);
    for (size_t i = ancestors.size(); i-- > 0;) {
      if (costs.at(ancestors[i], child) > most) continue;
      flat.parent[child] = ancestors[i];
      break;
    }
  }
  return flat;
}

void PruneLeaves(absl::Span<const int> wanted, WorkerTree& tree) {
  std::vector<bool> needed(tree.parent.size(), false);
  for (const int worker : wanted) {
    for (int at = worker; tree.parent[at] >= 0 && !needed[at]; at = tree.parent[at]) {
      needed[at] = true;
    }
  }
  needed[tree.root] = true;
  for (size_t worker = 0; worker < needed.size(); ++worker) {
    if (!needed[worker]) tree.parent[worker] = -1;
  }
}

double CostOf(const WorkerTree& tree, const EdgeCosts& costs) {
  double sum = 0;
  for (size_t worker = 0; worker < tree.parent.size(); ++worker) {
    if (tree.parent[worker] < 0 || static_cast<int>(worker) == tree.root) continue;
    sum += costs.at(tree.parent[worker], static_cast<int>(worker));
  }
  return sum;
}

}  // namespace syncopate::plan
