#include "train/checkpoint_files.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/status.h"

namespace syncopate::train {
namespace {

constexpr char kSetPrefix[] = "checkpoint-";

std::string SetFolder(const std::string& folder, int64_t set) {
  return absl::StrCat(folder, "/", kSetPrefix, set);
}

}  // namespace

std::string RankFile(const std::string& folder, int64_t set, int rank) {
  return absl::StrCat(SetFolder(folder, set), "/rank-", rank);
}

absl::Status SavePart(const std::string& folder, int64_t set, int rank,
                      const Checkpoint& checkpoint, Disk& disk) {
  SYNCOPATE_RETURN_IF_ERROR(disk.MakeFolder(SetFolder(folder, set)));
  SYNCOPATE_RETURN_IF_ERROR(SaveCheckpoint(RankFile(folder, set, rank), checkpoint, disk));
  // Another worker of this host may have made the set's folder.
  return disk.Sync(folder);
}

void RemoveOlder(const std::string& folder, int64_t set, int64_t previous, Disk& disk) {
  for (const std::string& name : disk.List(folder)) {
    absl::string_view digits = name;
    int64_t other = -1;
    if (!absl::ConsumePrefix(&digits, kSetPrefix) || !absl::SimpleAtoi(digits, &other)) continue;
    if (other >= set || other == previous) continue;
    disk.Remove(absl::StrCat(folder, "/", name)).IgnoreError();
  }
}

}  // namespace syncopate::train
