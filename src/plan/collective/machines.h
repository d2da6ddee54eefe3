// What planners that know two levels, inside a machine and between machines, share.
//
// The machines are the groups of PlannerOptions::levels[0]; without levels every worker is a
// machine of its own.
#ifndef SYNCOPATE_PLAN_COLLECTIVE_MACHINES_H_
#define SYNCOPATE_PLAN_COLLECTIVE_MACHINES_H_

#include <cstdint>
#include <vector>

#include "plan/collective/pipeline.h"
#include "plan/collective/request.h"

namespace syncopate::plan {

// The ranks of each machine. The options must be valid.
std::vector<std::vector<int>> MachinesOf(const CollectiveRequest& request,
                                         const PlannerOptions& options);

// How many workers the largest machine has: also the number of shares that are dealt to the members
// of every machine in turn, so that machines of different sizes work together.
uint32_t LargestOf(const std::vector<std::vector<int>>& machines);

// By machine, the rank of the member that holds share number `share`.
std::vector<int> HoldersOf(const std::vector<std::vector<int>>& machines, uint32_t share);

// An edge of a tree of ranks; the depth of the child is at least 1.
struct RankEdge {
  int parent = 0;
  int child = 0;
  int depth = 0;
};

// The tree on which the machine's member at index `root` collects from the others: that of the
// options for this rank, or else one edge from everybody. Parents come before their children.
std::vector<RankEdge> LocalTreeOf(const std::vector<int>& machine, size_t root,
                                  const PlannerOptions& options);

// An all-reduce around the ring of `ranks`, as many rounds for each half as there are ranks less
// one, each a stage from `stage` on. The data are as many chunks as there are ranks, from `first`.
void AllReduceAround(const std::vector<int>& ranks, int stage, uint32_t first, Pipeline* pipeline);

}  // namespace syncopate::plan

#endif  // SYNCOPATE_PLAN_COLLECTIVE_MACHINES_H_
