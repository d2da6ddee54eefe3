#include "train/snapshots.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/parse.h"
#include "base/status.h"
#include "train/checkpoint.h"
#include "train/options/disk.h"

namespace syncopate::train {
namespace {

constexpr absl::string_view kSnapshotPrefix = "snapshot-";
constexpr absl::string_view kSnapshotNumbers = "numbers";

std::string SnapshotFolder(const std::string& run_folder, int64_t mark) {
  return absl::StrCat(run_folder, "/", kSnapshotPrefix, mark);
}

}  // namespace

absl::Status SaveSnapshot(const std::string& run_folder, int rank, const Snapshot& snapshot) {
  const std::string folder = SnapshotFolder(run_folder, snapshot.mark);
  SYNCOPATE_RETURN_IF_ERROR(RealDisk().MakeFolder(folder));
  Checkpoint file;
  file.config = absl::StrCat(static_cast<int64_t>(snapshot.seconds * 1e6));  // microseconds
  file.model = "snapshot";
  file.iteration = snapshot.mark;
  file.tensors.push_back({std::string(kSnapshotNumbers), snapshot.model.numbers});
  for (const at::Tensor& count : snapshot.model.counts) {
    file.tensors.push_back({absl::StrCat("count-", file.tensors.size()), count});
  }
  return SaveCheckpoint(absl::StrCat(folder, "/rank-", rank), file);
}

std::vector<int64_t> SnapshotMarks(const std::string& run_folder) {
  std::vector<int64_t> marks;
  for (const std::string& name : RealDisk().List(run_folder)) {
    absl::string_view number = name;
    if (!absl::ConsumePrefix(&number, kSnapshotPrefix)) continue;
    const absl::StatusOr<int64_t> mark = ParseInt(number, 0, INT64_MAX);
    if (mark.ok()) marks.push_back(*mark);
  }
  std::sort(marks.begin(), marks.end());
  return marks;
}

// A worker that was killed while it wrote has left no whole file, and does not count.
absl::StatusOr<Snapshot> LoadSnapshot(const std::string& run_folder, int64_t mark) {
  const std::string folder = SnapshotFolder(run_folder, mark);
  Snapshot snapshot = {.mark = mark, .seconds = 0, .model = {}};
  int found = 0;
  for (const std::string& name : RealDisk().List(folder)) {
    absl::StatusOr<Checkpoint> file = LoadCheckpoint(absl::StrCat(folder, "/", name));
    if (!file.ok() || file->tensors.empty()) continue;
    const absl::StatusOr<int64_t> microseconds = ParseInt(file->config, 0, INT64_MAX);
    if (!microseconds.ok()) continue;
    snapshot.seconds = std::max(snapshot.seconds, static_cast<double>(*microseconds) * 1e-6);
    const at::Tensor numbers = file->tensors[0].tensor.to(at::kDouble);
    if (++found == 1) {
      snapshot.model.numbers = numbers;
      for (size_t i = 1; i < file->tensors.size(); ++i) {
        snapshot.model.counts.push_back(file->tensors[i].tensor);
      }
    } else if (numbers.numel() == snapshot.model.numbers.numel()) {
      snapshot.model.numbers.add_(numbers);
    } else {
      return absl::DataLossError(absl::StrCat(folder, ": the files are of different models"));
    }
  }
  if (found == 0) return absl::NotFoundError(absl::StrCat(folder, ": no file is whole"));
  snapshot.model.numbers = snapshot.model.numbers.div(found).to(at::kFloat);
  return snapshot;
}

void RemoveSnapshot(const std::string& run_folder, int64_t mark) {
  (void)RealDisk().Remove(SnapshotFolder(run_folder, mark));
}

void RemoveSnapshots(const std::string& run_folder, int64_t after) {
  for (const int64_t mark : SnapshotMarks(run_folder)) {
    if (mark > after) RemoveSnapshot(run_folder, mark);
  }
}

}  // namespace syncopate::train
