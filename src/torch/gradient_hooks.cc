#include "torch/gradient_hooks.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <utility>

namespace syncopate::torch {

struct GradientHooks::Shared {
  std::function<void(int)> ready;  // empty: the hooks are gone
};

namespace {

class Hook final : public ::torch::autograd::FunctionPostHook {
 public:
  explicit Hook(std::function<void()> call) : call_(std::move(call)) {}
  ::torch::autograd::variable_list operator()(
      const ::torch::autograd::variable_list& outputs,
      const ::torch::autograd::variable_list& /*inputs*/) override {
    call_();
    return outputs;
  }

 private:
  const std::function<void()> call_;
};

}  // namespace

GradientHooks::GradientHooks(const std::vector<at::Tensor>& parameters,
                             std::function<void(int)> ready)
    : shared_(std::make_shared<Shared>()) {
  shared_->ready = std::move(ready);
  for (size_t i = 0; i < parameters.size(); ++i) {
    const auto accumulator = ::torch::autograd::impl::grad_accumulator(parameters[i]);
    accumulator->add_post_hook(
        std::make_unique<Hook>([shared = shared_, index = static_cast<int>(i)] {
          if (shared->ready) shared->ready(index);
        }));
    accumulators_.push_back(accumulator);
  }
}

GradientHooks::~GradientHooks() { shared_->ready = nullptr; }

}  // namespace syncopate::torch
