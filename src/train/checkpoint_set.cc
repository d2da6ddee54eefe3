#include "train/checkpoint_set.h"

#include <cstdint>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "train/options/checkpoint_note.h"

namespace syncopate::train {
namespace {

constexpr char kPrefix[] = "checkpoint-";

std::string SetFolder(const std::string& folder, int64_t iteration) {
  return absl::StrCat(folder, "/", kPrefix, iteration);
}
std::string RankFile(const std::string& folder, int64_t iteration, int rank) {
  return absl::StrCat(SetFolder(folder, iteration), "/rank-", rank);
}

absl::Status WriteNote(const std::string& folder, const CheckpointNote& note, Disk& disk) {
  SYNCOPATE_RETURN_IF_ERROR(disk.Sync(SetFolder(folder, note.iteration)));
  SYNCOPATE_RETURN_IF_ERROR(WriteCheckpointNote(folder, note, disk));
  SYNCOPATE_RETURN_IF_ERROR(disk.Sync(CheckpointNotePath(folder)));
  return disk.Sync(folder);
}

// What rank 0 finds: the iteration, or -1 with `why`.
int64_t ReadNote(const std::string& folder, int workers, Disk& disk, absl::Status& why) {
  const absl::StatusOr<CheckpointNote> note = ReadCheckpointNote(folder, disk);
  why = note.ok() ? CheckWorkers(*note, workers) : note.status();
  return why.ok() ? note->iteration : -1;
}

}  // namespace

absl::Status SaveToSet(const std::string& folder, int rank, Group& group,
                       const Checkpoint& checkpoint, Disk& disk) {
  absl::Status status = disk.MakeFolder(SetFolder(folder, checkpoint.iteration));
  if (status.ok()) {
    status = SaveCheckpoint(RankFile(folder, checkpoint.iteration, rank), checkpoint, disk);
  }
  // The checkpoint counts only once all workers have saved theirs.
  int64_t failures = status.ok() ? 0 : 1;
  SYNCOPATE_RETURN_IF_ERROR(group.AllReduce(Array::Of(&failures, 1), ReduceOp::kSum));
  SYNCOPATE_RETURN_IF_ERROR(status);
  if (failures > 0) {
    return absl::UnavailableError(
        absl::StrCat(failures, " other workers could not save their part of the checkpoint"));
  }
  if (rank == 0) {
    SYNCOPATE_RETURN_IF_ERROR(WriteNote(folder, {checkpoint.iteration, group.size()}, disk));
  }
  SYNCOPATE_RETURN_IF_ERROR(group.Barrier());
  // Every worker tries to remove older checkpoints, since hosts may have folders of their own; on a
  // shared folder the first one succeeds.
  for (const std::string& name : disk.List(folder)) {
    if (!absl::StartsWith(name, kPrefix) || name == absl::StrCat(kPrefix, checkpoint.iteration)) {
      continue;
    }
    disk.Remove(absl::StrCat(folder, "/", name)).IgnoreError();
  }
  return absl::OkStatus();
}

absl::StatusOr<Checkpoint> LoadFromSet(const std::string& folder, int rank, Group& group,
                                       Disk& disk) {
  absl::Status why = absl::FailedPreconditionError("rank 0 found no checkpoint to go on from");
  int64_t iteration = rank == 0 ? ReadNote(folder, group.size(), disk, why) : 0;
  SYNCOPATE_RETURN_IF_ERROR(group.Broadcast(Array::Of(&iteration, 1), 0));
  if (iteration < 0) return why;
  return LoadCheckpoint(RankFile(folder, iteration, rank), disk);
}

}  // namespace syncopate::train
