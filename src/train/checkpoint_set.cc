#include "train/checkpoint_set.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "train/options/checkpoint_note.h"

namespace syncopate::train {
namespace {

namespace fs = std::filesystem;

constexpr char kPrefix[] = "checkpoint-";

std::string SetFolder(const std::string& folder, int64_t iteration) {
  return absl::StrCat(folder, "/", kPrefix, iteration);
}
std::string RankFile(const std::string& folder, int64_t iteration, int rank) {
  return absl::StrCat(SetFolder(folder, iteration), "/rank-", rank);
}

// What the file or folder holds is on disk afterwards.
absl::Status ForceToDisk(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.ok() && fsync(fd.get()) == 0) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("cannot force ", path, " to disk: ", std::strerror(errno)));
}

absl::Status WriteNote(const std::string& folder, const CheckpointNote& note) {
  SYNCOPATE_RETURN_IF_ERROR(ForceToDisk(SetFolder(folder, note.iteration)));
  SYNCOPATE_RETURN_IF_ERROR(WriteCheckpointNote(folder, note));
  SYNCOPATE_RETURN_IF_ERROR(ForceToDisk(CheckpointNotePath(folder)));
  return ForceToDisk(folder);
}

// What rank 0 finds: the iteration, or -1 with `why`.
int64_t ReadNote(const std::string& folder, int workers, absl::Status& why) {
  const absl::StatusOr<CheckpointNote> note = ReadCheckpointNote(folder);
  why = note.ok() ? CheckWorkers(*note, workers) : note.status();
  return why.ok() ? note->iteration : -1;
}

}  // namespace

absl::Status SaveToSet(const std::string& folder, int rank, Group& group,
                       const Checkpoint& checkpoint) {
  std::error_code error;
  fs::create_directories(SetFolder(folder, checkpoint.iteration), error);
  absl::Status status = SaveCheckpoint(RankFile(folder, checkpoint.iteration, rank), checkpoint);
  // The checkpoint counts only once all workers have saved theirs.
  int64_t failures = status.ok() ? 0 : 1;
  SYNCOPATE_RETURN_IF_ERROR(group.AllReduce(Array::Of(&failures, 1), ReduceOp::kSum));
  SYNCOPATE_RETURN_IF_ERROR(status);
  if (failures > 0) {
    return absl::UnavailableError(
        absl::StrCat(failures, " other workers could not save their part of the checkpoint"));
  }
  if (rank == 0) {
    SYNCOPATE_RETURN_IF_ERROR(WriteNote(folder, {checkpoint.iteration, group.size()}));
  }
  SYNCOPATE_RETURN_IF_ERROR(group.Barrier());
  // Every worker tries to remove older checkpoints, since hosts may have folders of their own; on a
  // shared folder the first one succeeds.
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (!absl::StartsWith(name, kPrefix) || name == absl::StrCat(kPrefix, checkpoint.iteration)) {
      continue;
    }
    std::error_code ignored;
    fs::remove_all(entry.path(), ignored);
  }
  return absl::OkStatus();
}

absl::StatusOr<Checkpoint> LoadFromSet(const std::string& folder, int rank, Group& group) {
  absl::Status why = absl::FailedPreconditionError("rank 0 found no checkpoint to go on from");
  int64_t iteration = rank == 0 ? ReadNote(folder, group.size(), why) : 0;
  SYNCOPATE_RETURN_IF_ERROR(group.Broadcast(Array::Of(&iteration, 1), 0));
  if (iteration < 0) return why;
  return LoadCheckpoint(RankFile(folder, iteration, rank));
}

}  // namespace syncopate::train
