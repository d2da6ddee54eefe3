// Trees inside machines that follow the links there.
#ifndef SYNCOPATE_PLAN_COLLECTIVE_LOCAL_TREES_H_
#define SYNCOPATE_PLAN_COLLECTIVE_LOCAL_TREES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "model/topology.h"
#include "plan/collective/request.h"

namespace syncopate::plan {

// For every worker a tree of the workers of its machine, on which it can collect a share of the
// data and hand it out again. One after the other, each tree takes the edges that keep the worst
// loaded link or shared capacity as little loaded as may be, so that all trees of a machine
// together use its links evenly; edges on which messages pass through fewer links go first.
// `topology` must be valid; `machines` holds workers that are placed on its devices.
absl::StatusOr<std::vector<PlannerOptions::LocalTree>> PackLocalTrees(
    const Topology& topology, absl::Span<const int> placement,
    const std::vector<std::vector<int>>& machines);

}  // namespace syncopate::plan

#endif  // SYNCOPATE_PLAN_COLLECTIVE_LOCAL_TREES_H_
