#include "schedule/planners.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/limits.h"
#include "base/status.h"
#include "schedule/asc_wfbp.h"
#include "schedule/fixed_planners.h"
#include "schedule/mg_wfbp.h"
#include "schedule/search.h"

namespace syncopate::schedule {
namespace {

using Plan = Schedule (*)(const TensorTable&, const cost::CommunicationCosts&,
                          const ScheduleOptions&);

// The planners, in the order of kPlans.
constexpr SchedulePlanner kPlanners[] = {
    {"none", "one transfer after the backward pass", false},
    {"wfbp", "each tensor alone, one after the other", false},
    {"mg-wfbp", "merged where that hides a start-up"},
    {"bucket", "buckets of a fixed size", false},
    {"asc-wfbp", "normal, merged or two at once, by the greedy rule"},
    {"search", "the best found on the exact model"},
};
constexpr Plan kPlans[] = {PlanNone, PlanWfbp, PlanMgWfbp, PlanBuckets, PlanAscWfbp, PlanBySearch};
static_assert(std::size(kPlanners) == std::size(kPlans));

}  // namespace

absl::Span<const SchedulePlanner> SchedulePlanners() { return kPlanners; }

bool PlansByMeasurements(absl::string_view planner) {
  for (const SchedulePlanner& known : kPlanners) {
    if (known.name == planner) return known.by_measurements;
  }
  return true;
}

absl::StatusOr<Schedule> MakeSchedule(absl::string_view planner, const TensorTable& table,
                                      const cost::CommunicationCosts& costs,
                                      const ScheduleOptions& options) {
  absl::Status status = Validate(table);
  if (!status.ok()) return At("the tensor table", status);
  status = Validate(costs);
  if (!status.ok()) return At("the costs", status);
  if (options.ways_max < 0 || options.ways_max > limits::kBesideMax + 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        options.ways_max, " transfers at once; there may be 1 to ", limits::kBesideMax + 1));
  }
  if (options.bucket_bytes == 0 || options.first_bucket_bytes == 0) {
    return absl::InvalidArgumentError("a bucket cannot be of 0 bytes");
  }
  for (size_t i = 0; i < std::size(kPlanners); ++i) {
    if (kPlanners[i].name == planner) return kPlans[i](table, costs, options);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "\"", planner, "\" is not a schedule; choose one of ",
      absl::StrJoin(kPlanners, ", ", [](std::string* out, const SchedulePlanner& known) {
        absl::StrAppend(out, known.name);
      })));
}

}  // namespace syncopate::schedule
