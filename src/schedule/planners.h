// The planners of schedules, by name: which tensors are sent together and which transfers at once.
// Pure functions: the same input gives the same schedule on every worker.
#ifndef SYNCOPATE_SCHEDULE_PLANNERS_H_
#define SYNCOPATE_SCHEDULE_PLANNERS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "cost/communication_costs.h"
#include "model/schedule.h"
#include "model/tensor_table.h"

namespace syncopate::schedule {

struct ScheduleOptions {
  // Planner "bucket": a bucket is full when it has this many bytes. The defaults are the sizes of
  // PyTorch's DistributedDataParallel.
  uint64_t bucket_bytes = uint64_t{25} << 20;
  uint64_t first_bucket_bytes = uint64_t{1} << 20;
  // Planner "search": the largest number of transfers at once. 0: as many as gamma was measured
  // for, at least 2.
  int ways_max = 0;
  // Planner "search": plan for a forward pass whose layers wait only for their own tensors
  // (TimelineOptions).
  bool overlap_forward = false;
};

struct SchedulePlanner {
  absl::string_view name;
  absl::string_view summary;    // half a line for people
  bool by_measurements = true;  // it looks at times and costs
};

// All planners, the simplest first.
//   none      one transfer of everything, after the backward pass
//   wfbp      each tensor alone, one after the other
//   mg-wfbp   merges a tensor with the next while that is ready before a start-up would be over
//   bucket    buckets of a fixed size, one after the other
//   asc-wfbp  the published greedy rule: normal, merged or simultaneous, two at once at most
//   search    the best that a search on the exact model finds; never worse than the others on it
absl::Span<const SchedulePlanner> SchedulePlanners();

// Whether the planner looks at the tensors' times and at the communication costs. Those that do not
// (none, wfbp, bucket) make the same schedule whatever is measured. True for an unknown name.
bool PlansByMeasurements(absl::string_view planner);

// InvalidArgument if the name is unknown, with the names that there are, or if a value is not
// valid.
absl::StatusOr<Schedule> MakeSchedule(absl::string_view planner, const TensorTable& table,
                                      const cost::CommunicationCosts& costs,
                                      const ScheduleOptions& options = {});

}  // namespace syncopate::schedule

#endif  // SYNCOPATE_SCHEDULE_PLANNERS_H_
