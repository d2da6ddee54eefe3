// What planners tell about themselves in the same way: variants, limits and numbers of steps that
// several algorithms have in common (PlannerInfo).
#ifndef SYNCOPATE_PLAN_COLLECTIVE_VARIANTS_H_
#define SYNCOPATE_PLAN_COLLECTIVE_VARIANTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "plan/collective/planners.h"

namespace syncopate::plan {

// One variant in the order of the ranks and, where that differs, one with workers that are near one
// another (same host, rack, pod) side by side.
absl::StatusOr<std::vector<Variant>> VariantsByPlace(const PlanningContext& context);

// A limit for planners that are of no use without groups of workers.
std::string LimitWithoutGroups(const PlanningContext& context);

// One variant, with all levels of groups that the topology names.
absl::StatusOr<std::vector<Variant>> VariantWithLevels(const PlanningContext& context);

// One variant, with all levels of groups and with trees that follow the links inside machines.
absl::StatusOr<std::vector<Variant>> VariantWithLocalTrees(const PlanningContext& context);

// Steps of programs in which, in each of `phases`, every worker has a message for every other.
uint64_t StepsOfAllPairs(uint64_t workers, uint64_t phases);

// Steps of programs that move shares inside machines and around rings between them.
uint64_t StepsOfMachines(uint64_t workers, const PlannerOptions& options);

}  // namespace syncopate::plan

#endif  // SYNCOPATE_PLAN_COLLECTIVE_VARIANTS_H_
