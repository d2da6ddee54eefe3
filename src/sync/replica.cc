#include "sync/replica.h"

#include "absl/strings/str_cat.h"

namespace syncopate::sync {

absl::Status Replica::SetBatch(uint64_t samples) {
  return absl::UnimplementedError(
      absl::StrCat("the strategy wants batches of ", samples,
                   " samples, and this training loop cannot change its batches"));
}

absl::Status Replica::SetBatches(const std::map<int, uint64_t>& samples) {
  return absl::UnimplementedError(
      absl::StrCat("the strategy changes the batches of ", samples.size(),
                   " workers, and this training loop cannot change its batches"));
}

absl::Status Replica::SetProgress(const strategy::SetProgress&) {
  return absl::UnimplementedError(
      "the strategy counts the samples of all workers, and this training loop counts its "
      "iterations");
}

}  // namespace syncopate::sync
