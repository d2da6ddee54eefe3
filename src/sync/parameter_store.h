// What a worker holds for others: they push gradients to it and pull parameters from it.
//
// Ranges are of the packed layout (model/tensor_layout.h), which is the same on all workers.
#ifndef SYNCOPATE_SYNC_PARAMETER_STORE_H_
#define SYNCOPATE_SYNC_PARAMETER_STORE_H_

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "model/tensor_layout.h"

namespace syncopate::sync {

// Used by one thread at a time, which is not the training thread but sends the worker's heartbeats: what
// is pushed and pulled is applied and read in pieces of at most kPieceBytes (sync/range_pieces.h), one
// push or pull after the other.
class ParameterStore {
 public:
  virtual ~ParameterStore() = default;
  // Takes the gradients of a piece that a worker has pushed, `weight` times each. An error ends the job
  // of the worker that holds the store.
  virtual absl::Status Apply(const TensorLayout::Range& range, const std::byte* gradients,
                             double weight) = 0;
  // Writes the parameters as they are now.
  virtual absl::Status Read(const TensorLayout::Range& range, std::byte* to) = 0;
};

// Plain stochastic gradient descent, in memory.
class SgdStore : public ParameterStore {
 public:
  // `parameters`: what it begins with, in the packed layout. All tensors are of floating types.
  SgdStore(std::vector<std::byte> parameters, double learning_rate);

  absl::Status Apply(const TensorLayout::Range& range, const std::byte* gradients,
                     double weight) override;
  absl::Status Read(const TensorLayout::Range& range, std::byte* to) override;

 private:
  absl::Status Check(const TensorLayout::Range& range) const;

  std::vector<std::byte> parameters_;
  const double learning_rate_;
};

}  // namespace syncopate::sync

#endif  // SYNCOPATE_SYNC_PARAMETER_STORE_H_
