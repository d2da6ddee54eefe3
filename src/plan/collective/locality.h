// Which workers are near one another: what planners want to know of a topology that names hosts,
// racks and pods.
//
// The place of a worker is the path from the largest group that its device stands in to its host:
// the topology's `group` of the device or else of its host, cut at '/', then the host.
#ifndef SYNCOPATE_PLAN_COLLECTIVE_LOCALITY_H_
#define SYNCOPATE_PLAN_COLLECTIVE_LOCALITY_H_

#include <vector>

#include "absl/types/span.h"
#include "model/topology.h"

namespace syncopate::plan {

// The active workers in groups that share a place, from the smallest groups to the largest, as
// PlannerOptions::levels wants them. Levels that say nothing (everybody alone, all together, the
// same as the level before) are left out; empty if none is left.
std::vector<std::vector<std::vector<int>>> LevelsOf(const Topology& topology,
                                                    absl::Span<const int> placement,
                                                    absl::Span<const int> active);

// The active workers, those that are near one another side by side, else ascending.
std::vector<int> OrderByPlace(const Topology& topology, absl::Span<const int> placement,
                              absl::Span<const int> active);

}  // namespace syncopate::plan

#endif  // SYNCOPATE_PLAN_COLLECTIVE_LOCALITY_H_
