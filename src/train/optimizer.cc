#include "train/optimizer.h"

#include <ATen/ATen.h>

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace syncopate::train {

namespace {

// The step of torch::optim::SGD without dampening.
class Sgd final : public Optimizer {
 public:
  Sgd(const OptimizerOptions& options, std::vector<at::Tensor> parameters)
      : Optimizer(std::move(parameters)), options_(options) {}

  void Apply(size_t index, const at::Tensor& gradient, double learning_rate) override {
    const at::NoGradGuard no_grad;
    at::Tensor parameter = parameters_[index];
    OptimizerState& state = states_[index];
    at::Tensor change = gradient;
    if (options_.weight_decay != 0) change = change.add(parameter, options_.weight_decay);
    if (options_.momentum != 0) {
      if (state.updates == 0) {
        state.first = change.clone();
      } else {
        state.first.mul_(options_.momentum).add_(change);
      }
      change = options_.nesterov ? change.add(state.first, options_.momentum) : state.first;
    }
    parameter.add_(change, -learning_rate);
    ++state.updates;
  }

 private:
  int StateTensors() const override { return options_.momentum != 0 ? 1 : 0; }

  const OptimizerOptions options_;
};

// The step of torch::optim::Adam without amsgrad.
class Adam final : public Optimizer {
 public:
  Adam(const OptimizerOptions& options, std::vector<at::Tensor> parameters)
      : Optimizer(std::move(parameters)), options_(options) {}

  void Apply(size_t index, const at::Tensor& gradient, double learning_rate) override {
    const at::NoGradGuard no_grad;
    at::Tensor parameter = parameters_[index];
    OptimizerState& state = states_[index];
    if (state.updates == 0) {
      state.first = at::zeros_like(parameter);
      state.second = at::zeros_like(parameter);
    }
    const auto updates = static_cast<double>(++state.updates);
    const double correction1 = 1 - std::pow(options_.beta1, updates);
    const double correction2 = 1 - std::pow(options_.beta2, updates);
    at::Tensor change = gradient;
    if (options_.weight_decay != 0) change = change.add(parameter, options_.weight_decay);
    state.first.mul_(options_.beta1).add_(change, 1 - options_.beta1);
    state.second.mul_(options_.beta2).addcmul_(change, change, 1 - options_.beta2);
    const at::Tensor divisor =
        (state.second.sqrt() / std::sqrt(correction2)).add_(options_.epsilon);
    parameter.addcdiv_(state.first, divisor, -(learning_rate / correction1));
  }

 private:
  int StateTensors() const override { return 2; }

  const OptimizerOptions options_;
};

bool Fits(const at::Tensor& tensor, const at::Tensor& parameter, bool wanted) {
  if (!wanted) return !tensor.defined();
  return tensor.defined() && tensor.sizes() == parameter.sizes() &&
         tensor.scalar_type() == parameter.scalar_type();
}

}  // namespace

absl::Status Optimizer::SetStates(std::vector<OptimizerState> states) {
  if (states.size() != parameters_.size()) {
    return absl::InvalidArgumentError(absl::StrCat("the state of an optimizer of ", states.size(),
                                                   " tensors, not of ", parameters_.size()));
  }
  for (size_t i = 0; i < states.size(); ++i) {
    const bool used = states[i].updates > 0;
    if (states[i].updates < 0 ||
        !Fits(states[i].first, parameters_[i], used && StateTensors() > 0) ||
        !Fits(states[i].second, parameters_[i], used && StateTensors() > 1)) {
      return absl::InvalidArgumentError(
          absl::StrCat("the state of tensor ", i, " is of another optimizer"));
    }
  }
  states_ = std::move(states);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Optimizer>> MakeOptimizer(const OptimizerOptions& options,
                                                         std::vector<at::Tensor> parameters) {
  SYNCOPATE_RETURN_IF_ERROR(options.Validate());
  std::unique_ptr<Optimizer> optimizer;
  if (options.name == "sgd") {
    optimizer = std::make_unique<Sgd>(options, std::move(parameters));
  } else {
    optimizer = std::make_unique<Adam>(options, std::move(parameters));
  }
  return optimizer;
}

double ClipByGlobalNorm(absl::Span<const at::Tensor> gradients, double norm_max) {
  const at::NoGradGuard no_grad;
  double squares = 0;
  for (const at::Tensor& gradient : gradients) {
    const double norm = gradient.norm().item<double>();
    squares += norm * norm;
  }
  const double norm = std::sqrt(squares);
  if (norm > norm_max) {
    for (const at::Tensor& gradient : gradients) gradient.mul_(norm_max / (norm + 1e-6));
  }
  return norm;
}

}  // namespace syncopate::train
