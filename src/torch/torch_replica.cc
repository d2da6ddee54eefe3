#include "torch/torch_replica.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/InferenceMode.h>

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "torch/tensor_types.h"

namespace syncopate::torch {
namespace {

// Memory of ours, seen as a tensor of the same shape and type as `like`.
at::Tensor ViewOf(const std::byte* memory, const at::Tensor& like) {
  return at::from_blob(const_cast<std::byte*>(memory), like.sizes(),
                       at::TensorOptions().dtype(like.dtype()));
}

// Runs `call` on the values of a tensor, by way of a copy if they do not lie in order or are of a
// type that does not travel.
absl::Status OnValues(const at::Tensor& tensor,
                      const std::function<absl::Status(const Array&)>& call) {
  if (tensor.numel() == 0) return absl::OkStatus();
  const at::NoGradGuard guard;
  at::Tensor values = tensor.contiguous();
  if (!TypeOf(values.scalar_type())) {
    values = values.to(values.is_floating_point() ? at::kDouble : at::kLong);
  }
  const std::optional<DataType> type = TypeOf(values.scalar_type());
  SYNCOPATE_RETURN_IF_ERROR(
      call({values.data_ptr(), static_cast<uint64_t>(values.numel()), *type}));
  if (!values.is_same(tensor)) tensor.copy_(values);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TensorTable> TableOf(const std::string& model,
                                    const std::vector<NamedTensor>& parameters) {
  TensorTable table{.model = model, .tensors = {}};
  for (const NamedTensor& parameter : parameters) {
    const std::optional<DataType> type = TypeOf(parameter.tensor.scalar_type());
    if (!type || !IsFloating(*type)) {
      return absl::InvalidArgumentError(
          absl::StrCat("parameter ", parameter.name, " is of type ",
                       c10::toString(parameter.tensor.scalar_type()),
                       "; gradients of float32, float64, float16 and bfloat16 can be averaged"));
    }
    if (parameter.tensor.numel() == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("parameter ", parameter.name, " has no elements"));
    }
    table.tensors.push_back({.name = parameter.name,
                             .elements = static_cast<uint64_t>(parameter.tensor.numel()),
                             .type = *type});
  }
  SYNCOPATE_RETURN_IF_ERROR(Validate(table));
  return table;
}

void TorchReplica::Pack(strategy::Content content, int tensor, double factor, std::byte* to) {
  const at::NoGradGuard guard;
  const at::Tensor& parameter = parameters_[static_cast<size_t>(tensor)];
  at::Tensor out = ViewOf(to, parameter);
  const at::Tensor values = content == strategy::Content::kGradients ? parameter.grad() : parameter;
  if (!values.defined()) {
    out.zero_();
  } else if (factor == 1) {
    out.copy_(values);
  } else {
    at::mul_out(out, values, at::scalar_tensor(factor, out.options()));
  }
}

double TorchReplica::Apply(const strategy::ApplyUpdate& update, const sync::Brought& brought) {
  const at::NoGradGuard guard;
  double squared = 0;
  for (int tensor = update.first; tensor <= update.last; ++tensor) {
    const at::Tensor& parameter = parameters_[static_cast<size_t>(tensor)];
    const at::Tensor before = update.measure ? parameter.clone() : at::Tensor();
    switch (update.update) {
      case strategy::Update::kStepAveraged:
        StepWith(tensor, ViewOf(brought.Result(tensor), parameter), update.rate_factor);
        break;
      case strategy::Update::kStepLocal:
        StepWith(tensor, parameter.grad().defined() ? parameter.grad() : at::zeros_like(parameter),
                 update.rate_factor);
        break;
      case strategy::Update::kAdopt:
        parameter.copy_(ViewOf(brought.Result(tensor), parameter));
        break;
      case strategy::Update::kAddChange:
        parameter.add_(ViewOf(brought.Result(tensor), parameter));
        parameter.sub_(ViewOf(brought.Sent(tensor), parameter));
        break;
    }
    if (update.measure) {
      const at::Tensor moved = at::sub(parameter, before).to(at::kDouble);
      squared += at::dot(moved.flatten(), moved.flatten()).item<double>();
    }
  }
  return squared;
}

absl::Status BroadcastTensors(Group& group, const std::vector<at::Tensor>& tensors) {
  for (const at::Tensor& tensor : tensors) {
    SYNCOPATE_RETURN_IF_ERROR(
        OnValues(tensor, [&](const Array& values) { return group.Broadcast(values, 0); }));
  }
  return absl::OkStatus();
}

absl::Status AverageTensors(Group& group, const std::vector<at::Tensor>& tensors) {
  for (const at::Tensor& tensor : tensors) {
    SYNCOPATE_RETURN_IF_ERROR(OnValues(tensor, [&](const Array& values) {
      return tensor.is_floating_point() ? group.AllReduce(values, ReduceOp::kAverage)
                                        : group.Broadcast(values, 0);
    }));
  }
  return absl::OkStatus();
}

}  // namespace syncopate::torch
