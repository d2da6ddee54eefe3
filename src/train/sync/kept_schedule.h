// A driver's schedule, planned from what the job itself measures and kept right while it runs.
#ifndef SYNCOPATE_TRAIN_SYNC_KEPT_SCHEDULE_H_
#define SYNCOPATE_TRAIN_SYNC_KEPT_SCHEDULE_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "driver/live_driver.h"
#include "driver/schedule_keeper.h"
#include "model/tensor_table.h"
#include "syncopate/syncopate.h"

namespace syncopate::train {

// All workers call both, at the same points. Measures the network first if the planner asks for
// costs (mg-wfbp, asc-wfbp, search). `overlap_forward`: the next forward of a layer waits for its
// own tensors only, not for all transfers.
absl::StatusOr<std::unique_ptr<driver::ScheduleKeeper>> MakeKeeper(Worker& worker,
                                                                   const TensorTable& table,
                                                                   const std::string& planner,
                                                                   bool overlap_forward);

// After each iteration of the driver: gives it the schedule from the next iteration on, if there is
// a new one, and says whether.
absl::StatusOr<bool> KeepSchedule(driver::ScheduleKeeper& keeper, driver::LiveDriver& driver);

}  // namespace syncopate::train

#endif  // SYNCOPATE_TRAIN_SYNC_KEPT_SCHEDULE_H_
