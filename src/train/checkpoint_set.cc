#include "train/checkpoint_set.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

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
absl::Status AgreeOn(const absl::Status& own, absl::string_view what,
                     adapt::JobExchange& exchange) {
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<std::string> outcomes,
                             adapt::TextsOfAll(exchange, "checkpoint", own.ok() ? "" : "failed"));
  SYNCOPATE_RETURN_IF_ERROR(own);
  const auto failures = std::count_if(outcomes.begin(), outcomes.end(),
                                      [](const std::string& outcome) { return !outcome.empty(); });
  if (failures == 0) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(
      failures == 1 ? "another worker" : absl::StrCat(failures, " other workers"), " ", what));
}

// Numbers of rank 0, on all workers.
absl::Status TakeNumbersOfFirst(std::vector<int64_t>& numbers, adapt::JobExchange& exchange) {
  SYNCOPATE_ASSIGN_OR_RETURN(
      const std::string text,
      adapt::TextOfRoot(exchange, "checkpoint's sets", adapt::EncodeNumbers(numbers), 0));
  SYNCOPATE_ASSIGN_OR_RETURN(numbers, adapt::DecodeIntegers(text, numbers.size()));
  return absl::OkStatus();
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

absl::Status SaveToSet(const std::string& folder, adapt::JobExchange& exchange,
                       const Checkpoint& checkpoint, Disk& disk) {
  const int rank = exchange.rank();
  SYNCOPATE_RETURN_IF_ERROR(AgreeOn(SavePart(folder, rank, checkpoint, disk),
                                    "could not save its part of the checkpoint", exchange));
  std::vector<int64_t> previous = {-1};
  absl::Status noted;
  if (rank == 0) {
    previous[0] = PreviousSet(folder, checkpoint.iteration, exchange.size(), disk);
    noted = WriteCheckpointNote(
        folder,
        {.iteration = checkpoint.iteration, .workers = exchange.size(), .previous = previous[0]},
        disk);
  }
  SYNCOPATE_RETURN_IF_ERROR(AgreeOn(noted, "could not write the checkpoint's note", exchange));
  SYNCOPATE_RETURN_IF_ERROR(TakeNumbersOfFirst(previous, exchange));
  RemoveOlder(folder, checkpoint.iteration, previous[0], disk);
  return absl::OkStatus();
}

absl::StatusOr<Checkpoint> LoadFromSet(const std::string& folder, adapt::JobExchange& exchange,
                                       Disk& disk) {
  const int rank = exchange.rank();
  absl::Status why = absl::FailedPreconditionError("rank 0 found no checkpoint to go on from");
  std::vector<int64_t> sets = {-1, -1};  // the iterations of the last one and of the one before
  if (rank == 0) {
    const absl::StatusOr<CheckpointNote> note = ReadCheckpointNote(folder, disk);
    why = note.ok() ? CheckWorkers(*note, exchange.size()) : note.status();
    if (why.ok()) sets[0] = note->iteration;
    if (why.ok()) sets[1] = note->previous;
  }
  SYNCOPATE_RETURN_IF_ERROR(TakeNumbersOfFirst(sets, exchange));
  if (sets[0] < 0) return why;
  absl::StatusOr<Checkpoint> last = LoadCheckpoint(RankFile(folder, sets[0], rank), disk);
  // The worker that cannot read its file says why; the others have nothing to say.
  if (sets[1] < 0 || AgreeOn(last.status(), "", exchange).ok()) return last;
  absl::StatusOr<Checkpoint> before = LoadCheckpoint(RankFile(folder, sets[1], rank), disk);
  if (!AgreeOn(before.status(), "", exchange).ok()) return last;
  if (!last.ok()) {
    Log(LogLevel::kWarn, last.status().message(), "; going on from the set before, at iteration ",
        sets[1]);
  }
  // From now on the other one may be saved anew, and does not count until it is whole.
  if (rank == 0) {
    SYNCOPATE_RETURN_IF_ERROR(WriteCheckpointNote(
        folder, {.iteration = sets[1], .workers = exchange.size(), .previous = -1}, disk));
  }
  return before;
}

}  // namespace syncopate::train
