// Updates of parameters, one tensor at a time: a tensor is updated as soon as its averaged gradient
// is there, whatever the others do. The results are those of torch::optim.
#ifndef SYNCOPATE_TRAIN_OPTIMIZER_H_
#define SYNCOPATE_TRAIN_OPTIMIZER_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "train/options/optimizer_options.h"

namespace syncopate::train {

// What an optimizer remembers of one tensor; undefined tensors before its first update.
struct OptimizerState {
  int64_t updates = 0;
  at::Tensor first;   // sgd: momentum; adam: mean of gradients
  at::Tensor second;  // adam: mean of their squares
};

// Threads may update different tensors at once.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // Updates parameter `index` by a gradient of its shape, which it does not change.
  virtual void Apply(size_t index, const at::Tensor& gradient, double learning_rate) = 0;

  const std::vector<OptimizerState>& states() const { return states_; }
  // As states() gave them, from the same kind of optimizer of the same parameters. The tensors
  // become the optimizer's.
  absl::Status SetStates(std::vector<OptimizerState> states);

 protected:
  explicit Optimizer(std::vector<at::Tensor> parameters)
      : parameters_(std::move(parameters)), states_(parameters_.size()) {}
  // How many tensors a state has after an update.
  virtual int StateTensors() const = 0;

  const std::vector<at::Tensor> parameters_;
  std::vector<OptimizerState> states_;
};

// InvalidArgument for an unknown name or a value out of its range.
absl::StatusOr<std::unique_ptr<Optimizer>> MakeOptimizer(const OptimizerOptions& options,
                                                         std::vector<at::Tensor> parameters);

// Scales gradients in place so that the norm of all together is at most `norm_max`; gives the norm
// that they had.
double ClipByGlobalNorm(absl::Span<const at::Tensor> gradients, double norm_max);

}  // namespace syncopate::train

#endif  // SYNCOPATE_TRAIN_OPTIMIZER_H_
