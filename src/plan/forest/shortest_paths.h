// Shortest paths between workers where most can send to most.
#ifndef SYNCOPATE_PLAN_FOREST_SHORTEST_PATHS_H_
#define SYNCOPATE_PLAN_FOREST_SHORTEST_PATHS_H_

#include <vector>

#include "absl/types/span.h"
#include "plan/forest/worker_tree.h"

namespace syncopate::plan {

// For each pair the cost of the cheapest path, through any workers; kNone if there is none, 0 from
// a worker to itself.
EdgeCosts PathCosts(const EdgeCosts& costs);

// The tree of the cheapest paths from `root` to all that it can reach.
WorkerTree ShortestPathTree(const EdgeCosts& costs, int root);

// A Steiner tree made by adding, again and again, the cheapest path from the tree to a terminal
// that is not in it (Takahashi and Matsuyama). Terminals that cannot be reached stay out.
WorkerTree NearestTerminalTree(const EdgeCosts& costs, int root, absl::Span<const int> terminals);

}  // namespace syncopate::plan

#endif  // SYNCOPATE_PLAN_FOREST_SHORTEST_PATHS_H_
