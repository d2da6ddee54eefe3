#include "plan/forest/shortest_paths.h"

#include <algorithm>

namespace syncopate::plan {
namespace {

// Dijkstra's algorithm from a set of workers that may grow while it runs.
class Frontier {
 public:
  explicit Frontier(const EdgeCosts& costs)
      : costs_(costs),
        distance_(costs.workers(), EdgeCosts::kNone),
        parent_(costs.workers(), -1),
        settled_(costs.workers(), 0) {}

  // A worker from which paths start.
  void AddSource(int worker) {
    distance_[worker] = 0;
    settled_[worker] = 0;
  }

  // The nearest worker that was not given yet since its distance last fell, or -1. Paths may go
  // through it from now on.
  int Next() {
    int nearest = -1;
    for (int worker = 0; worker < costs_.workers(); ++worker) {
      if (settled_[worker] || distance_[worker] == EdgeCosts::kNone) continue;
      if (nearest < 0 || distance_[worker] < distance_[nearest]) nearest = worker;
    }
    if (nearest < 0) return -1;
    settled_[nearest] = 1;
    const double* row = costs_.row(nearest);
    for (int to = 0; to < costs_.workers(); ++to) {
      const double distance = distance_[nearest] + row[to];
      if (distance >= distance_[to]) continue;
      distance_[to] = distance;
      parent_[to] = nearest;
      settled_[to] = 0;
    }
    return nearest;
  }

  int parent(int worker) const { return parent_[worker]; }

 private:
  const EdgeCosts& costs_;
  std::vector<double> distance_;
  std::vector<int> parent_;
  std::vector<char> settled_;
};

}  // namespace

EdgeCosts PathCosts(const EdgeCosts& costs) {
  EdgeCosts paths = costs;
  const int workers = costs.workers();
  for (int worker = 0; worker < workers; ++worker) paths.set(worker, worker, 0);
  for (int via = 0; via < workers; ++via) {
    const double* onward = paths.row(via);
    for (int from = 0; from < workers; ++from) {
      const double first = paths.at(from, via);
      if (first == EdgeCosts::kNone || from == via) continue;
      double* row = paths.row(from);
      for (int to = 0; to < workers; ++to) row[to] = std::min(row[to], first + onward[to]);
    }
  }
  return paths;
}

WorkerTree ShortestPathTree(const EdgeCosts& costs, int root) {
  Frontier frontier(costs);
  frontier.AddSource(root);
  while (frontier.Next() >= 0) {
  }
  WorkerTree tree{.root = root, .parent = std::vector<int>(costs.workers())};
  for (int worker = 0; worker < costs.workers(); ++worker) {
    tree.parent[worker] = frontier.parent(worker);
  }
  tree.parent[root] = root;
  return tree;
}

WorkerTree NearestTerminalTree(const EdgeCosts& costs, int root, absl::Span<const int> terminals) {
  WorkerTree tree{.root = root, .parent = std::vector<int>(costs.workers(), -1)};
  tree.parent[root] = root;
  std::vector<char> wanted(costs.workers(), 0);
  for (const int terminal : terminals) wanted[terminal] = 1;
  Frontier frontier(costs);
  frontier.AddSource(root);
  for (int found = frontier.Next(); found >= 0; found = frontier.Next()) {
    if (!wanted[found]) continue;
    for (int worker = found; tree.parent[worker] < 0; worker = tree.parent[worker]) {
      tree.parent[worker] = frontier.parent(worker);
      frontier.AddSource(worker);
    }
  }
  return tree;
}

}  // namespace syncopate::plan
