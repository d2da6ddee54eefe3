#include "train/options/checkpoint_note.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "base/limits.h"
#include "nlohmann/json.hpp"

namespace syncopate::train {
namespace {

constexpr uint64_t kNoteBytesMax = uint64_t{1} << 20;

std::vector<int> UnlessOwn(const std::vector<int>& ranks) {
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i] != static_cast<int>(i)) return ranks;
  }
  return {};
}

std::string RanksText(absl::string_view key, const std::vector<int>& ranks) {
  const std::vector<int> written = UnlessOwn(ranks);
  return written.empty() ? ""
                         : absl::StrCat(", \"", key, "\": [", absl::StrJoin(written, ", "), "]");
}

}  // namespace

std::string CheckpointNotePath(const std::string& run_folder) {
  return absl::StrCat(run_folder, "/checkpoint.json");
}

absl::Status WriteCheckpointNote(const std::string& run_folder, const CheckpointNote& note,
                                 Disk& disk) {
  const std::string previous =
      note.previous < 0 ? "" : absl::StrCat(", \"previous\": ", note.previous);
  return WriteDurably(CheckpointNotePath(run_folder),
                      absl::StrCat("{\"iteration\": ", note.iteration, ", \"workers\": ",
                                   note.workers, previous, RanksText("ranks", note.ranks),
                                   RanksText("previous_ranks", note.previous_ranks), "}\n"),
                      disk);
}

absl::StatusOr<CheckpointNote> ReadCheckpointNote(const std::string& run_folder, Disk& disk) {
  const std::string path = CheckpointNotePath(run_folder);
  const absl::StatusOr<std::string> text = disk.Read(path, kNoteBytesMax);
  if (!text.ok()) {
    return absl::NotFoundError(
        absl::StrCat(run_folder, " has no whole checkpoint; begin without --resume"));
  }
  try {
    const auto json = nlohmann::json::parse(*text);
    CheckpointNote note = {.iteration = json.at("iteration").get<int64_t>(),
                           .workers = json.at("workers").get<int>(),
                           .previous = json.value("previous", int64_t{-1}),
                           .ranks = json.value("ranks", std::vector<int>()),
                           .previous_ranks = json.value("previous_ranks", std::vector<int>())};
    for (const std::vector<int>* ranks : {&note.ranks, &note.previous_ranks}) {
      const bool good = (ranks->empty() || static_cast<int>(ranks->size()) == note.workers) &&
                        std::all_of(ranks->begin(), ranks->end(), [](int rank) {
                          return rank >= 0 && rank < limits::kWorkersMax;
                        });
      if (!good) return absl::DataLossError(absl::StrCat(path, " is damaged"));
    }
    return note;
  } catch (const nlohmann::json::exception&) {
    return absl::DataLossError(absl::StrCat(path, " is damaged"));
  }
}

absl::Status CheckWorkers(const CheckpointNote& note, int workers) {
  if (note.workers == workers) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "the checkpoint is of ", note.workers, " workers, this job has ", workers,
      "; it holds the state of each worker, so as many must go on: leave -n out, or begin anew in ",
      "another folder"));
}

}  // namespace syncopate::train
