#include "train/options/checkpoint_note.h"

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

namespace syncopate::train {
namespace {

constexpr uint64_t kNoteBytesMax = 4096;

}  // namespace

std::string CheckpointNotePath(const std::string& run_folder) {
  return absl::StrCat(run_folder, "/checkpoint.json");
}

absl::Status WriteCheckpointNote(const std::string& run_folder, const CheckpointNote& note,
                                 Disk& disk) {
  const std::string previous =
      note.previous < 0 ? "" : absl::StrCat(", \"previous\": ", note.previous);
  return WriteDurably(CheckpointNotePath(run_folder),
                      absl::StrCat("{\"iteration\": ", note.iteration,
                                   ", \"workers\": ", note.workers, previous, "}\n"),
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
    return CheckpointNote{.iteration = json.at("iteration").get<int64_t>(),
                          .workers = json.at("workers").get<int>(),
                          .previous = json.value("previous", int64_t{-1})};
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
