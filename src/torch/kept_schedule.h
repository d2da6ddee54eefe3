// Plans a synchronizer's schedule from what the job itself measures and keeps it right while the
// job runs.
#ifndef SYNCOPATE_TORCH_KEPT_SCHEDULE_H_
#define SYNCOPATE_TORCH_KEPT_SCHEDULE_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "adapt/schedule_keeper.h"
#include "model/schedule.h"
#include "model/tensor_table.h"
#include "observe/recorder.h"
#include "sync/synchronizer.h"
#include "syncopate/syncopate.h"

namespace syncopate::torch {

struct KeeperOptions {
  // The next forward of a layer waits for its own tensors only, not for all transfers.
  bool overlap_forward = false;
  // Measure communication costs in MakeKeeper(), however long that takes. Otherwise the job begins
  // with buckets, and measuring is put off until it fits within a small part of the job's time.
  bool measure_first = false;
  // Gets a span for each measurement, and knows what evaluations and checkpoints took; null: none. It must
  // outlive the keeper.
  observe::Recorder* recorder = nullptr;
  int64_t first_iteration = 0;  // the number that the synchronizer's first iteration has there
};

// All workers call both, at the same points. Costs are measured only if the planner asks for them
// (mg-wfbp, asc-wfbp, search).
absl::StatusOr<std::unique_ptr<adapt::ScheduleKeeper>> MakeKeeper(Worker& worker,
                                                                  const TensorTable& table,
                                                                  const std::string& planner,
                                                                  const KeeperOptions& options);

// To be called after each iteration of the synchronizer, and what follows it. What comes next by rank 0's
// news has been proposed to all workers, which use it from an iteration on that they agree on.
absl::StatusOr<adapt::ScheduleKeeper::News> KeepSchedule(adapt::ScheduleKeeper& keeper,
                                                         sync::Synchronizer& synchronizer);

}  // namespace syncopate::torch

#endif  // SYNCOPATE_TORCH_KEPT_SCHEDULE_H_
