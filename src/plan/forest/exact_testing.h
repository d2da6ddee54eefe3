// An oracle for tests: the best that any forest can do on a small network, from a linear program
// over all trees that there are.
#ifndef SYNCOPATE_PLAN_FOREST_EXACT_TESTING_H_
#define SYNCOPATE_PLAN_FOREST_EXACT_TESTING_H_

#include <algorithm>
#include <coin/ClpSimplex.hpp>
#include <limits>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "plan/forest/worker_tree.h"

namespace syncopate::plan {

// Which resources (links, NICs) a byte from one worker to another loads: by from * workers + to.
// Empty: the one cannot send to the other.
using EdgeResources = std::vector<std::vector<int>>;

enum class TreeDirection { kReduce, kBroadcast };

// How often a byte along the whole tree loads each resource.
inline std::vector<double> LoadsOf(const WorkerTree& tree, TreeDirection direction,
                                   const EdgeResources& edges, size_t resources) {
  std::vector<double> loads(resources, 0);
  const size_t workers = tree.parent.size();
  for (auto [from, to] : EdgesFromRoot(tree)) {
    if (direction == TreeDirection::kReduce) std::swap(from, to);
    for (const int resource : edges[from * workers + to]) loads[resource] += 1;
  }
  return loads;
}

// Every tree with this root that has all active workers, has no other leaves and uses only edges
// that exist in its direction. There are workers^(workers-2) if all are active: at most 6 or so.
inline std::vector<WorkerTree> AllTrees(int workers, absl::Span<const int> active, int root,
                                        TreeDirection direction, const EdgeResources& edges) {
  std::vector<char> is_active(workers, 0);
  for (const int worker : active) is_active[worker] = 1;
  is_active[root] = 1;
  std::vector<WorkerTree> trees;
  WorkerTree tree{.root = root, .parent = std::vector<int>(workers, -1)};
  // Counts through all choices of a parent, or none, for each worker.
  while (true) {
    std::vector<int> children(workers, 0);
    int members = 0;
    bool good = true;
    for (int worker = 0; worker < workers; ++worker) {
      const int parent = tree.parent[worker];
      if (worker == root) continue;
      if (parent < 0) {
        good = good && !is_active[worker];
        continue;
      }
      ++members;
      ++children[parent];
      const bool reduce = direction == TreeDirection::kReduce;
      const int edge = reduce ? worker * workers + parent : parent * workers + worker;
      good = good && parent != worker && !edges[edge].empty();
    }
    for (int worker = 0; worker < workers; ++worker) {
      const bool inside = worker == root || tree.parent[worker] >= 0;
      if (!inside && children[worker] > 0) good = false;
      if (inside && !is_active[worker] && children[worker] == 0) good = false;
    }
    if (good && static_cast<int>(EdgesFromRoot(tree).size()) == members) {
      trees.push_back(tree);
      trees.back().parent[root] = root;
    }
    int next = 0;
    while (next < workers && (next == root || ++tree.parent[next] == workers)) {
      if (next != root) tree.parent[next] = -1;
      ++next;
    }
    if (next == workers) return trees;
  }
}

// A linear program: minimise the columns' costs; no column is negative.
class SmallProgram {
 public:
  void AddRow(double least, double most) {
    least_.push_back(least);
    most_.push_back(most);
  }

  void AddEntry(int row, double value) {
    if (value == 0) return;
    rows_.push_back(row);
    values_.push_back(value);
  }

  // A column of the entries that were added since the last one.
  void AddColumn(double cost) {
    costs_.push_back(cost);
    starts_.push_back(static_cast<CoinBigIndex>(rows_.size()));
  }

  // The least cost; infinity if the rows contradict one another.
  double Solve() const {
    const std::vector<double> zero(costs_.size(), 0);
    const std::vector<double> unlimited(costs_.size(), COIN_DBL_MAX);
    ClpSimplex program;
    program.setLogLevel(0);
    program.loadProblem(static_cast<int>(costs_.size()), static_cast<int>(least_.size()),
                        starts_.data(), rows_.data(), values_.data(), zero.data(), unlimited.data(),
                        costs_.data(), least_.data(), most_.data());
    program.primal();
    if (program.isProvenPrimalInfeasible()) return std::numeric_limits<double>::infinity();
    return program.isProvenOptimal() ? program.objectiveValue()
                                     : std::numeric_limits<double>::quiet_NaN();
  }

 private:
  std::vector<double> least_, most_, costs_, values_;
  std::vector<int> rows_;
  std::vector<CoinBigIndex> starts_ = {0};
};

// The most that trees with these loads carry together: the largest sum of weights such that no
// resource is loaded beyond its capacity.
inline double BestPackingRate(const std::vector<std::vector<double>>& loads_of_trees,
                              absl::Span<const double> capacities) {
  SmallProgram program;
  for (const double capacity : capacities) program.AddRow(-COIN_DBL_MAX, capacity);
  for (const std::vector<double>& loads : loads_of_trees) {
    for (size_t i = 0; i < loads.size(); ++i) program.AddEntry(static_cast<int>(i), loads[i]);
    program.AddColumn(-1);
  }
  return -program.Solve();
}

// The least time in which one byte can be summed over the active workers and given to all of them
// (capacities in bytes per second), with all roots, all reduce trees and all broadcast trees, both
// running at once as a pipeline. Infinity if there is no way.
inline double ExactForestSeconds(int workers, absl::Span<const int> active,
                                 absl::Span<const double> capacities, const EdgeResources& edges) {
  // Rows: each resource's load - capacity * T <= 0; at each root, bytes reduced = bytes broadcast;
  // all bytes reduced = 1. The first column is T. The capacities are taken relative to the largest.
  const int resources = static_cast<int>(capacities.size());
  const int roots = static_cast<int>(active.size());
  const double unit = *std::max_element(capacities.begin(), capacities.end());
  SmallProgram program;
  for (int resource = 0; resource < resources; ++resource) {
    program.AddRow(-COIN_DBL_MAX, 0);
    program.AddEntry(resource, -capacities[resource] / unit);
  }
  program.AddColumn(1);
  for (int root = 0; root < roots; ++root) program.AddRow(0, 0);
  program.AddRow(1, 1);
  for (int root = 0; root < roots; ++root) {
    for (const TreeDirection direction : {TreeDirection::kReduce, TreeDirection::kBroadcast}) {
      const bool reduce = direction == TreeDirection::kReduce;
      for (const WorkerTree& tree : AllTrees(workers, active, active[root], direction, edges)) {
        const std::vector<double> loads = LoadsOf(tree, direction, edges, capacities.size());
        for (int resource = 0; resource < resources; ++resource) {
          program.AddEntry(resource, loads[resource]);
        }
        program.AddEntry(resources + root, reduce ? 1 : -1);
        program.AddEntry(resources + roots, reduce ? 1 : 0);
        program.AddColumn(0);
      }
    }
  }
  return program.Solve() / unit;
}

}  // namespace syncopate::plan

#endif  // SYNCOPATE_PLAN_FOREST_EXACT_TESTING_H_
