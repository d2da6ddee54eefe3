// Tells when the backward pass has computed a parameter's gradient.
#ifndef SYNCOPATE_TORCH_GRADIENT_HOOKS_H_
#define SYNCOPATE_TORCH_GRADIENT_HOOKS_H_

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <vector>

namespace syncopate::torch {

// Thread-safe as the backward pass is: `ready` is called on the threads that run it.
class GradientHooks {
 public:
  // From now on every backward pass calls ready(i) once parameters[i].grad() is complete: after the
  // gradient was added to what .grad() held. The parameters are leaves that require gradients.
  GradientHooks(const std::vector<at::Tensor>& parameters, std::function<void(int)> ready);
  // No call comes after it. It must not be called while a backward pass runs.
  ~GradientHooks();
  GradientHooks(const GradientHooks&) = delete;

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
  std::vector<std::shared_ptr<void>> accumulators_;  // LibTorch holds them weakly
};

}  // namespace syncopate::torch

#endif  // SYNCOPATE_TORCH_GRADIENT_HOOKS_H_
