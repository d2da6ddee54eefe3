// Trees over workers, and what it costs to send from one worker to another: what the parts of the
// forest planner hand to one another.
#ifndef SYNCOPATE_PLAN_FOREST_WORKER_TREE_H_
#define SYNCOPATE_PLAN_FOREST_WORKER_TREE_H_

#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#include "absl/types/span.h"

namespace syncopate::plan {

// A rooted tree over some of the workers 0 .. n-1. It serves both directions: a reduction sends
// from each worker to its parent, a broadcast from the parent to the worker.
struct WorkerTree {
  int root = -1;
  // By worker: the next one on the way to the root; the root's is itself; -1: not in the tree.
  std::vector<int> parent;

  friend bool operator==(const WorkerTree&, const WorkerTree&) = default;
};

// The edges (parent, child), every parent before its children. Empty also if `tree` has a cycle.
std::vector<std::pair<int, int>> EdgesFromRoot(const WorkerTree& tree);

// The largest number of edges between the root and a worker.
int DepthOf(const WorkerTree& tree);

// For each ordered pair of workers the cost of sending from the first to the second.
class EdgeCosts {
 public:
  static constexpr double kNone = std::numeric_limits<double>::infinity();  // there is no such edge

  explicit EdgeCosts(int workers)
      : workers_(workers),
        costs_(static_cast<size_t>(workers) * static_cast<size_t>(workers), kNone) {}

  int workers() const { return workers_; }
  double at(int from, int to) const { return costs_[Index(from, to)]; }
  void set(int from, int to, double cost) { costs_[Index(from, to)] = cost; }
  // The costs of sending from `from` to each worker.
  const double* row(int from) const { return &costs_[Index(from, 0)]; }
  double* row(int from) { return &costs_[Index(from, 0)]; }
  EdgeCosts Reversed() const;

 private:
  size_t Index(int from, int to) const {
    return static_cast<size_t>(from) * static_cast<size_t>(workers_) + static_cast<size_t>(to);
  }

  int workers_;
  std::vector<double> costs_;  // by from, then to
};

// What the tree's edges cost together, from parent to child.
double CostOf(const WorkerTree& tree, const EdgeCosts& costs);

// The same root and workers in a shallower tree: each worker hangs on the ancestor nearest to the
// root from which its edge costs at most (1 + slack) times as much as from its parent.
WorkerTree Flatten(const WorkerTree& tree, const EdgeCosts& costs, double slack);

// Takes out leaves that are not in `wanted`, until every leaf is. The root stays.
void PruneLeaves(absl::Span<const int> wanted, WorkerTree& tree);

}  // namespace syncopate::plan

#endif  // SYNCOPATE_PLAN_FOREST_WORKER_TREE_H_
