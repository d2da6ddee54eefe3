// The checkpoints of all workers of a job: one file each, and a note that says which set is whole.
//
//   checkpoint.json          {"iteration": 200, "workers": 4, "previous": 180}
//                            (train/options/checkpoint_note.h)
//   checkpoint-200/rank-0    and so on
//   checkpoint-180/rank-0    the set before, and no other
//
// The order of a save: every worker's file, its set's folder and the run's folder are on its disk;
// all workers know that; the note is on rank 0's disk; all workers know that; sets other than the
// two that the note speaks of are removed. So a job that ends at any moment, by a loss of power too,
// leaves a whole set on every host, if it ever had one.
#ifndef SYNCOPATE_TRAIN_CHECKPOINT_SET_H_
#define SYNCOPATE_TRAIN_CHECKPOINT_SET_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "adapt/job_exchange.h"
#include "train/checkpoint.h"
#include "train/options/checkpoint_note.h"
#include "train/options/disk.h"

namespace syncopate::train {

// All workers call both. Folders on other hosts may be their own: rank 0's note counts.
absl::Status SaveToSet(const std::string& folder, adapt::JobExchange& exchange,
                       const Checkpoint& checkpoint, Disk& disk = RealDisk());
// A worker's file, and the note on its set.
struct LoadedSet {
  Checkpoint checkpoint;
  CheckpointNote note;
};
// Where a worker cannot read its file of the last set, all take the set before, and the note speaks
// of that from then on. NotFound if there is no whole set, FailedPrecondition if it is of another
// number of workers.
absl::StatusOr<LoadedSet> LoadFromSet(const std::string& folder, adapt::JobExchange& exchange,
                                      Disk& disk = RealDisk());

}  // namespace syncopate::train

#endif  // SYNCOPATE_TRAIN_CHECKPOINT_SET_H_
