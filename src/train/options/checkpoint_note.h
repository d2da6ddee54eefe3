// The note on a run's last whole set of checkpoints. Without LibTorch, so that the command can tell
// what a run can go on from.
//
//   checkpoint.json   {"iteration": 200, "workers": 4, "previous": 180}
//
// Of a job that has lost workers, and of one that went on from such a set, it says whose files these are:
//
//   checkpoint.json   {"iteration": 200, "workers": 3, "previous": 180, "ranks": [0, 1, 3],
//                      "previous_ranks": [0, 1, 3]}
#ifndef SYNCOPATE_TRAIN_OPTIONS_CHECKPOINT_NOTE_H_
#define SYNCOPATE_TRAIN_OPTIONS_CHECKPOINT_NOTE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "train/options/disk.h"

namespace syncopate::train {

struct CheckpointNote {
  int64_t iteration = 0;
  int workers = 0;
  int64_t previous = -1;  // the iteration of the whole set before it, which is kept; -1: none is
  // By worker: the ranks that its files of the two sets have in their names; empty: its own.
  std::vector<int> ranks = {};
  std::vector<int> previous_ranks = {};

  // The name of a worker's files.
  int RankOf(int worker) const { return NameIn(ranks, worker); }
  int PreviousRankOf(int worker) const { return NameIn(previous_ranks, worker); }
  static int NameIn(const std::vector<int>& ranks, int worker) {
    return static_cast<size_t>(worker) < ranks.size() ? ranks[static_cast<size_t>(worker)] : worker;
  }

  friend bool operator==(const CheckpointNote&, const CheckpointNote&) = default;
};

std::string CheckpointNotePath(const std::string& run_folder);
// Replaced as a whole, and on disk afterwards.
absl::Status WriteCheckpointNote(const std::string& run_folder, const CheckpointNote& note,
                                 Disk& disk = RealDisk());
// NotFound if there is no whole checkpoint, DataLoss if the note is damaged. Ranks that are the workers' own
// are left out.
absl::StatusOr<CheckpointNote> ReadCheckpointNote(const std::string& run_folder,
                                                  Disk& disk = RealDisk());

// FailedPrecondition, with what it means, unless the checkpoint is of that many workers.
absl::Status CheckWorkers(const CheckpointNote& note, int workers);

}  // namespace syncopate::train

#endif  // SYNCOPATE_TRAIN_OPTIONS_CHECKPOINT_NOTE_H_
