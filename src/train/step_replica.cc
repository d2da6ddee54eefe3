#include "train/step_replica.h"

#include <cstddef>

namespace syncopate::train {

void StepReplica::StepWith(int tensor, const at::Tensor& gradient, double rate_factor) {
  if (clip_norm_ == 0) {
    optimizer_.Apply(static_cast<size_t>(tensor), gradient, rate_ * rate_factor);
    return;
  }
  // A strategy that updates together gives all of them, one after the other.
  held_.emplace_back(tensor, gradient);
  if (held_.size() < parameters().size()) return;
  std::vector<at::Tensor> gradients;
  for (const auto& [index, held] : held_) gradients.push_back(held);
  ClipByGlobalNorm(gradients, clip_norm_);
  for (const auto& [index, held] : held_) {
    optimizer_.Apply(static_cast<size_t>(index), held, rate_ * rate_factor);
  }
  held_.clear();
}

}  // namespace syncopate::train
