// The memory that a synchronizer's transfers read and write in place: gradients, parameters, and
// what was sent of them where that is kept, each in the packed layout of the tensors.
//
// Not thread-safe, but different tensors of it may be packed by different threads.
#ifndef SYNCOPATE_SYNC_PACKED_VALUES_H_
#define SYNCOPATE_SYNC_PACKED_VALUES_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "model/tensor_layout.h"
#include "model/tensor_table.h"
#include "strategy/command.h"
#include "sync/replica.h"
#include "syncopate/syncopate.h"

namespace syncopate::sync {

// Small floats lose too much when they are scaled before they are added up.
inline bool ScalesWell(DataType type) {
  return type == DataType::kFloat32 || type == DataType::kFloat64;
}

// What a pushed gradient counts that was packed with `share`: its weight of the gradient itself.
inline double PushWeight(DataType type, double weight, double share) {
  return share > 0 && ScalesWell(type) ? weight / share : weight;
}

class PackedValues {
 public:
  // `worker` and `replica` must outlive it.
  PackedValues(Worker& worker, const TensorTable& table, Replica& replica)
      : worker_(worker), replica_(replica), layout_(table), tensors_(table.size()) {}

  // Does a piece of what takes long in Allocate(); true: that was the last one.
  bool Prepare(strategy::Content content) const;
  // Memory for these values, and for what is sent of them; nothing if there is some already.
  absl::Status Allocate(strategy::Content content, bool keep_sent = false);

  const TensorLayout& layout() const { return layout_; }
  // The tensors of which a transfer moves at least a part, sorted.
  std::vector<int> TensorsOf(const strategy::StartTransfer& start) const;
  std::vector<TensorLayout::Range> RangesOf(const strategy::StartTransfer& start) const;

  // `share`: of this worker's samples among all, where it is known. With it multiplied in, a gradient
  // needs a plain sum, which does not have to wait for the others' weights. 0: not known.
  void PackGradient(int tensor, double share);
  // Packs what a transfer of parameters moves, and keeps it if it should: of all its tensors, or of one.
  void PackParameters(const strategy::StartTransfer& start);
  void PackParameters(const strategy::StartTransfer& start, int tensor);

  // Null before Allocate().
  std::byte* At(strategy::Content content);
  Brought BroughtOf(const strategy::ApplyUpdate& apply, strategy::Content content);

 private:
  Worker& worker_;
  Replica& replica_;
  const TensorLayout layout_;
  const int tensors_;
  std::optional<Buffer> gradients_;
  std::optional<Buffer> parameters_;
  std::unique_ptr<std::byte[]> sent_;
};

}  // namespace syncopate::sync

#endif  // SYNCOPATE_SYNC_PACKED_VALUES_H_
