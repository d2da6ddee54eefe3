// A synchronizer's schedule, planned from what the job itself measures and kept right while it
// runs.
#ifndef SYNCOPATE_TORCH_KEPT_SCHEDULE_H_
#define SYNCOPATE_TORCH_KEPT_SCHEDULE_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/tensor_table.h"
#include "sync/schedule_keeper.h"
#include "sync/synchronizer.h"
#include "syncopate/syncopate.h"

namespace syncopate::torch {

// All workers call both, at the same points. Measures the network first if the planner asks for
// costs (mg-wfbp, asc-wfbp, search). `overlap_forward`: the next forward of a layer waits for its
// own tensors only, not for all transfers.
absl::StatusOr<std::unique_ptr<sync::ScheduleKeeper>> MakeKeeper(Worker& worker,
                                                                 const TensorTable& table,
                                                                 const std::string& planner,
                                                                 bool overlap_forward);

// After each iteration of the synchronizer: gives it the schedule from the next iteration on, if
// there is a new one, and says whether.
absl::StatusOr<bool> KeepSchedule(sync::ScheduleKeeper& keeper, sync::Synchronizer& synchronizer);

}  // namespace syncopate::torch

#endif  // SYNCOPATE_TORCH_KEPT_SCHEDULE_H_
