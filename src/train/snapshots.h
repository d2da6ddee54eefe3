// Models as they were at marks of a run, to be evaluated when it has ended: evaluating them beside it
// would take the cores that the run is measured on.
//
//   snapshot-200/rank-0    and so on, one file a worker, in the form of a checkpoint; removed at the end
#ifndef SYNCOPATE_TRAIN_SNAPSHOTS_H_
#define SYNCOPATE_TRAIN_SNAPSHOTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "train/model_copy.h"

namespace syncopate::train {

struct Snapshot {
  int64_t mark = 0;    // the iteration of the job
  double seconds = 0;  // of the run, when the last of its copies was taken
  ModelCopy model;     // the mean of those of all workers that wrote one
};

absl::Status SaveSnapshot(const std::string& run_folder, int rank, const Snapshot& snapshot);
// The marks of which there are snapshots, in order.
std::vector<int64_t> SnapshotMarks(const std::string& run_folder);
absl::StatusOr<Snapshot> LoadSnapshot(const std::string& run_folder, int64_t mark);
void RemoveSnapshot(const std::string& run_folder, int64_t mark);
// Those of marks after this one; of all: -1.
void RemoveSnapshots(const std::string& run_folder, int64_t after = -1);

}  // namespace syncopate::train

#endif  // SYNCOPATE_TRAIN_SNAPSHOTS_H_
