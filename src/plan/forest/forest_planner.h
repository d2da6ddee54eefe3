// The forest among the planners (plan/collective/planners.h): its name, its settings, and the plan
// behind a program that the selection has chosen.
#ifndef SYNCOPATE_PLAN_FOREST_FOREST_PLANNER_H_
#define SYNCOPATE_PLAN_FOREST_FOREST_PLANNER_H_

#include <memory>

#include "absl/strings/string_view.h"
#include "plan/collective/request.h"
#include "plan/collective/select.h"
#include "plan/forest/forest.h"

namespace syncopate::plan {

inline constexpr absl::string_view kForest = "forest";

// For SelectOptions::data: the forest is planned with these options.
std::shared_ptr<const PlannerData> ForestSettings(const ForestOptions& options);

// The plan of a candidate of the forest planner; null for others, and for one that was skipped
// before it was planned.
const ForestPlan* ForestOf(const Candidate& candidate);

}  // namespace syncopate::plan

#endif  // SYNCOPATE_PLAN_FOREST_FOREST_PLANNER_H_
