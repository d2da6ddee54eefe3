// The checkpoints of all workers of a job: one file each, and a note that says which set is whole.
//
//   checkpoint.json          {"iteration": 200, "workers": 4} (train/options/checkpoint_note.h)
//   checkpoint-200/rank-0    and so on
//
// The note is written when all files of a set are on disk; older sets go then. So a job that ends
// at any moment leaves a whole set, if it ever had one.
#ifndef SYNCOPATE_TRAIN_CHECKPOINT_SET_H_
#define SYNCOPATE_TRAIN_CHECKPOINT_SET_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "syncopate/syncopate.h"
#include "train/checkpoint.h"
#include "train/options/disk.h"

namespace syncopate::train {

// All workers call both. Folders on other hosts may be their own: rank 0's note counts.
absl::Status SaveToSet(const std::string& folder, int rank, Group& group,
                       const Checkpoint& checkpoint, Disk& disk = RealDisk());
// NotFound if there is no whole set, FailedPrecondition if it is of another number of workers.
absl::StatusOr<Checkpoint> LoadFromSet(const std::string& folder, int rank, Group& group,
                                       Disk& disk = RealDisk());

}  // namespace syncopate::train

#endif  // SYNCOPATE_TRAIN_CHECKPOINT_SET_H_
