#include "train/checkpoint_set.h"

#include <cstdint>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/log.h"
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

// This worker's part of a set, on disk.
absl::Status SavePart(const std::string& folder, int rank, const Checkpoint& checkpoint,
                      Disk& disk) {
  const std::string set = SetFolder(folder, checkpoint.iteration);
  SYNCOPATE_RETURN_IF_ERROR(disk.MakeFolder(set));
  SYNCOPATE_RETURN_IF_ERROR(
      SaveCheckpoint(RankFile(folder, checkpoint.iteration, rank), checkpoint, disk));
  // Another worker of this host may have made the set's folder.
  return disk.Sync(folder);
}

// The whole set before `iteration`, as the note that is there now has it; -1: there is none.
int64_t PreviousSet(const std::string& folder, int64_t iteration, int workers, Disk& disk) {
  const absl::StatusOr<CheckpointNote> note = ReadCheckpointNote(folder, disk);
  if (!note.ok() || note->workers != workers) return -1;
  return note->iteration < iteration ? note->iteration : note->previous;
}

// All workers learn whether a step went well for all; `what` is what the others could not do.
absl::Status AgreeOn(const absl::Status& own, absl::string_view what, Group& group) {
  int64_t failures = own.ok() ? 0 : 1;
  SYNCOPATE_RETURN_IF_ERROR(group.AllReduce(Array::Of(&failures, 1), ReduceOp::kSum));
  SYNCOPATE_RETURN_IF_ERROR(own);
  if (failures == 0) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(
      failures == 1 ? "another worker" : absl::StrCat(failures, " other workers"), " ", what));
}

// Every worker removes older sets, since hosts may have folders of their own; on a shared folder the
// first one succeeds. A newer one stays: another worker on the same folder may be quicker, and write
// to the next set already. What cannot be removed is only in the way of the next save.
void RemoveOlder(const std::string& folder, int64_t iteration, int64_t previous, Disk& disk) {
  for (const std::string& name : disk.List(folder)) {
    absl::string_view digits = name;
    int64_t set = -1;
    if (!absl::ConsumePrefix(&digits, kPrefix) || !absl::SimpleAtoi(digits, &set)) continue;
    if (set >= iteration || set == previous) continue;
    disk.Remove(absl::StrCat(folder, "/", name)).IgnoreError();
  }
}

}  // namespace

absl::Status SaveToSet(const std::string& folder, int rank, Group& group,
                       const Checkpoint& checkpoint, Disk& disk) {
  SYNCOPATE_RETURN_IF_ERROR(AgreeOn(SavePart(folder, rank, checkpoint, disk),
                                    "could not save its part of the checkpoint", group));
  int64_t previous = -1;
  absl::Status noted;
  if (rank == 0) {
    previous = PreviousSet(folder, checkpoint.iteration, group.size(), disk);
    noted = WriteCheckpointNote(
        folder, {.iteration = checkpoint.iteration, .workers = group.size(), .previous = previous},
        disk);
  }
  SYNCOPATE_RETURN_IF_ERROR(AgreeOn(noted, "could not write the checkpoint's note", group));
  SYNCOPATE_RETURN_IF_ERROR(group.Broadcast(Array::Of(&previous, 1), 0));
  RemoveOlder(folder, checkpoint.iteration, previous, disk);
  return absl::OkStatus();
}

absl::StatusOr<Checkpoint> LoadFromSet(const std::string& folder, int rank, Group& group,
                                       Disk& disk) {
  absl::Status why = absl::FailedPreconditionError("rank 0 found no checkpoint to go on from");
  int64_t sets[2] = {-1, -1};  // the iterations of the last one and of the one before
  if (rank == 0) {
    const absl::StatusOr<CheckpointNote> note = ReadCheckpointNote(folder, disk);
    why = note.ok() ? CheckWorkers(*note, group.size()) : note.status();
    if (why.ok()) sets[0] = note->iteration;
    if (why.ok()) sets[1] = note->previous;
  }
  SYNCOPATE_RETURN_IF_ERROR(group.Broadcast(Array::Of(sets, 2), 0));
  if (sets[0] < 0) return why;
  absl::StatusOr<Checkpoint> last = LoadCheckpoint(RankFile(folder, sets[0], rank), disk);
  // The worker that cannot read its file says why; the others have nothing to say.
  if (sets[1] < 0 || AgreeOn(last.status(), "", group).ok()) return last;
  absl::StatusOr<Checkpoint> before = LoadCheckpoint(RankFile(folder, sets[1], rank), disk);
  if (!AgreeOn(before.status(), "", group).ok()) return last;
  if (!last.ok()) {
    Log(LogLevel::kWarn, last.status().message(), "; going on from the set before, at iteration ",
        sets[1]);
  }
  // From now on the other one may be saved anew, and does not count until it is whole.
  if (rank == 0) {
    SYNCOPATE_RETURN_IF_ERROR(WriteCheckpointNote(
        folder, {.iteration = sets[1], .workers = group.size(), .previous = -1}, disk));
  }
  return before;
}

}  // namespace syncopate::train
