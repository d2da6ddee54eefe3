// A worker's copy of the model, as the synchronizer reads and changes it.
#ifndef SYNCOPATE_SYNC_REPLICA_H_
#define SYNCOPATE_SYNC_REPLICA_H_

#include <cstddef>
#include <cstdint>
#include <map>

#include "absl/status/status.h"
#include "model/tensor_layout.h"
#include "strategy/command.h"

namespace syncopate::sync {

// What a transfer brought, where it stands in the packed layout.
class Brought {
 public:
  // Null for what there is not; the layout must outlive it.
  Brought(const TensorLayout& layout, const std::byte* result, const std::byte* sent)
      : layout_(layout), result_(result), sent_(sent) {}

  // Null for an update that takes nothing from a transfer.
  const std::byte* Result(int tensor) const { return At(result_, tensor); }
  // What this worker had sent. Null unless the transfer was told to keep it.
  const std::byte* Sent(int tensor) const { return At(sent_, tensor); }

 private:
  const std::byte* At(const std::byte* memory, int tensor) const {
    return memory == nullptr ? nullptr : memory + layout_.Offset(tensor);
  }

  const TensorLayout& layout_;
  const std::byte* const result_;
  const std::byte* const sent_;
};

// Gradients are packed, and updates applied, on the training thread within calls of the
// synchronizer. Parameters may be packed on the worker's control thread while the training thread
// computes, but never while an update is applied.
class Replica {
 public:
  virtual ~Replica() = default;
  // Writes the gradient or the parameters of a tensor, times `factor`. A tensor that had no part in
  // the backward pass has a gradient of 0.
  virtual void Pack(strategy::Content content, int tensor, double factor, std::byte* to) = 0;
  // Carries out an update of tensors first..last. Returns, where update.measure wants it, the square
  // of the distance between the parameters before and after it.
  virtual double Apply(const strategy::ApplyUpdate& update, const Brought& brought) = 0;
  // The strategy wants batches of another size, or says how far the job has come. A loop that cannot
  // follow says so.
  virtual absl::Status SetBatch(uint64_t samples);
  // All workers have agreed on batches of these sizes from the next iteration on, by rank, of those that
  // are not as at the start.
  virtual absl::Status SetBatches(const std::map<int, uint64_t>& samples);
  virtual absl::Status SetProgress(const strategy::SetProgress& progress);
};

}  // namespace syncopate::sync

#endif  // SYNCOPATE_SYNC_REPLICA_H_
