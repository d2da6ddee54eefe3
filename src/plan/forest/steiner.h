// Cheap directed trees that reach some of the workers and may pass through the others.
#ifndef SYNCOPATE_PLAN_FOREST_STEINER_H_
#define SYNCOPATE_PLAN_FOREST_STEINER_H_

#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "plan/forest/worker_tree.h"

namespace syncopate::plan {

// A cheap tree out of `root` (edges parent to child) that reaches every terminal: found by the
// greedy flow method of Watel and Weisser, then improved by local search. Its leaves are terminals.
// Costs are not negative. A tree with parent[t] == -1 for a terminal t if that cannot be reached.
// `root` may be a terminal.
WorkerTree FindSteinerTree(const EdgeCosts& costs, int root, absl::Span<const int> terminals);

// The same for many roots under the same costs: what depends on the costs alone (shortest paths,
// sorted edges) is made once. Not thread-safe.
class SteinerFinder {
 public:
  explicit SteinerFinder(const EdgeCosts& costs);
  SteinerFinder(const SteinerFinder&) = delete;
  SteinerFinder& operator=(const SteinerFinder&) = delete;
  ~SteinerFinder();

  WorkerTree Find(int root, absl::Span<const int> terminals);

 private:
  class Search;
  std::unique_ptr<Search> search_;
};

// A set of workers that every tree must enter, and what it adds to the bound.
struct SteinerCut {
  std::vector<int> set;  // sorted; holds a terminal and not the root
  double price = 0;
};

// No tree out of `root` that reaches every terminal costs less than this (dual ascent). Infinity if
// there is none. `cuts`, if given, receives the proof: their prices sum to the bound, and no edge
// costs less than the cuts that it enters.
double SteinerLowerBound(const EdgeCosts& costs, int root, absl::Span<const int> terminals,
                         std::vector<SteinerCut>* cuts = nullptr);

// The least cost of such a tree, by dynamic programming over sets of terminals: for at most
// kExactTerminalsMax terminals besides the root (NaN for more). Infinity if there is none.
inline constexpr int kExactTerminalsMax = 12;
double ExactSteinerCost(const EdgeCosts& costs, int root, absl::Span<const int> terminals);

}  // namespace syncopate::plan

#endif  // SYNCOPATE_PLAN_FOREST_STEINER_H_
