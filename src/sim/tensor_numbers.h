// Which numbers stand for the tensors of a virtual worker: one for each tensor, or all elements if the
// run has real gradients.
#ifndef SYNCOPATE_SIM_TENSOR_NUMBERS_H_
#define SYNCOPATE_SIM_TENSOR_NUMBERS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/tensor_layout.h"
#include "model/tensor_table.h"
#include "strategy/command.h"

namespace syncopate::sim {

// The part of a tensor that a transfer moves.
struct TensorCut {
  int tensor = 0;
  size_t first = 0;     // number, of all numbers of a worker
  size_t count = 0;     // of numbers
  size_t offset = 0;    // of its first number among those of the transfer
  double fraction = 1;  // of the tensor's bytes
  double share = 1;     // of each number: below 1 where one stands for a tensor that is cut
};

class TensorNumbers {
 public:
  TensorNumbers(const TensorTable& table, bool every_element) {
    for (const TensorInfo& tensor : table.tensors) {
      firsts_.push_back(size_);
      size_ += every_element ? tensor.elements : 1;
    }
    firsts_.push_back(size_);
  }

  size_t size() const { return size_; }  // of all tensors
  size_t first(int tensor) const { return firsts_[static_cast<size_t>(tensor)]; }
  size_t end(int tensor) const { return firsts_[static_cast<size_t>(tensor) + 1]; }

  // What the transfer moves; `start` has passed the checks of its range.
  std::vector<TensorCut> Cut(const TensorLayout& layout,
                             const strategy::StartTransfer& start) const;

 private:
  std::vector<size_t> firsts_;  // by tensor, and one behind the last
  size_t size_ = 0;
};

}  // namespace syncopate::sim

#endif  // SYNCOPATE_SIM_TENSOR_NUMBERS_H_
