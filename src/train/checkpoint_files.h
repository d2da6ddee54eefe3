// The files of a set of checkpoints, as one worker writes and removes them (checkpoint_set.h has what they
// are).
#ifndef SYNCOPATE_TRAIN_CHECKPOINT_FILES_H_
#define SYNCOPATE_TRAIN_CHECKPOINT_FILES_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "train/checkpoint.h"
#include "train/options/disk.h"

namespace syncopate::train {

// A set by its number: how many iterations of the job's batch were done, or nearly so.
std::string RankFile(const std::string& folder, int64_t set, int rank);

// A worker's part of a set, on disk when this returns: its file, the set's folder and the run's.
absl::Status SavePart(const std::string& folder, int64_t set, int rank,
                      const Checkpoint& checkpoint, Disk& disk);

// Every worker removes older sets, since hosts may have folders of their own; on a shared folder the
// first one succeeds. A newer one stays: another worker on the same folder may be quicker, and write
// to the next set already. What cannot be removed is only in the way of the next save.
void RemoveOlder(const std::string& folder, int64_t set, int64_t previous, Disk& disk);

}  // namespace syncopate::train

#endif  // SYNCOPATE_TRAIN_CHECKPOINT_FILES_H_
