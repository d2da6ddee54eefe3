// The note on a run's last whole set of checkpoints. Without LibTorch, so that the command can tell
// what a run can go on from.
//
//   checkpoint.json   {"iteration": 200, "workers": 4, "previous": 180}
#ifndef SYNCOPATE_TRAIN_OPTIONS_CHECKPOINT_NOTE_H_
#define SYNCOPATE_TRAIN_OPTIONS_CHECKPOINT_NOTE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "train/options/disk.h"

namespace syncopate::train {

struct CheckpointNote {
  int64_t iteration = 0;
  int workers = 0;
  int64_t previous = -1;  // the iteration of the whole set before it, which is kept; -1: none is

  friend bool operator==(const CheckpointNote&, const CheckpointNote&) = default;
};

std::string CheckpointNotePath(const std::string& run_folder);
// Replaced as a whole, and on disk afterwards.
absl::Status WriteCheckpointNote(const std::string& run_folder, const CheckpointNote& note,
                                 Disk& disk = RealDisk());
// NotFound if there is no whole checkpoint, DataLoss if the note is damaged.
absl::StatusOr<CheckpointNote> ReadCheckpointNote(const std::string& run_folder,
                                                  Disk& disk = RealDisk());

// FailedPrecondition, with what it means, unless the checkpoint is of that many workers.
absl::Status CheckWorkers(const CheckpointNote& note, int workers);

}  // namespace syncopate::train

#endif  // SYNCOPATE_TRAIN_OPTIONS_CHECKPOINT_NOTE_H_
