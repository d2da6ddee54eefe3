#include "train/checkpoint_set.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/log.h"
#include "base/status.h"
#include "train/checkpoint_files.h"

namespace syncopate::train {
namespace {

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

}  // namespace

absl::Status SaveToSet(const std::string& folder, adapt::JobExchange& exchange,
                       const Checkpoint& checkpoint, Disk& disk) {
  const int rank = exchange.rank();
  SYNCOPATE_RETURN_IF_ERROR(AgreeOn(SavePart(folder, checkpoint.iteration, rank, checkpoint, disk),
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

absl::StatusOr<LoadedSet> LoadFromSet(const std::string& folder, adapt::JobExchange& exchange,
                                      Disk& disk) {
  const int rank = exchange.rank(), size = exchange.size();
  absl::Status why = absl::FailedPreconditionError("rank 0 found no checkpoint to go on from");
  CheckpointNote note;
  // The iterations of the last set and of the one before, and whose files of them are whose.
  std::vector<int64_t> numbers(2 + 2 * static_cast<size_t>(size), -1);
  if (rank == 0) {
    const absl::StatusOr<CheckpointNote> read = ReadCheckpointNote(folder, disk);
    why = read.ok() ? CheckWorkers(*read, size) : read.status();
    if (why.ok()) {
      numbers[0] = read->iteration;
      numbers[1] = read->previous;
      for (int i = 0; i < size; ++i) {
        numbers[static_cast<size_t>(2 + i)] = read->RankOf(i);
        numbers[static_cast<size_t>(2 + size + i)] = read->PreviousRankOf(i);
      }
    }
  }
  SYNCOPATE_RETURN_IF_ERROR(TakeNumbersOfFirst(numbers, exchange));
  if (numbers[0] < 0) return why;
  note = {.iteration = numbers[0], .workers = size, .previous = numbers[1]};
  for (int i = 0; i < size; ++i) {
    note.ranks.push_back(static_cast<int>(numbers[static_cast<size_t>(2 + i)]));
    note.previous_ranks.push_back(static_cast<int>(numbers[static_cast<size_t>(2 + size + i)]));
  }
  absl::StatusOr<Checkpoint> last =
      LoadCheckpoint(RankFile(folder, note.iteration, note.RankOf(rank)), disk);
  // The worker that cannot read its file says why; the others have nothing to say.
  if (note.previous < 0 || AgreeOn(last.status(), "", exchange).ok()) {
    if (!last.ok()) return last.status();
    return LoadedSet{*std::move(last), std::move(note)};
  }
  absl::StatusOr<Checkpoint> before =
      LoadCheckpoint(RankFile(folder, note.previous, note.PreviousRankOf(rank)), disk);
  if (!AgreeOn(before.status(), "", exchange).ok()) {
    if (!last.ok()) return last.status();
    return LoadedSet{*std::move(last), std::move(note)};  // the others say why they cannot go on
  }
  if (!last.ok()) {
    Log(LogLevel::kWarn, last.status().message(), "; going on from the set before, at iteration ",
        note.previous);
  }
  // From now on the other one may be saved anew, and does not count until it is whole.
  note = {
      .iteration = note.previous, .workers = size, .previous = -1, .ranks = note.previous_ranks};
  if (rank == 0) SYNCOPATE_RETURN_IF_ERROR(WriteCheckpointNote(folder, note, disk));
  return LoadedSet{*std::move(before), std::move(note)};
}

}  // namespace syncopate::train
