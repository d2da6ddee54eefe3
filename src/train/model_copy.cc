#include "train/model_copy.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <cstdint>

namespace syncopate::train {
namespace {

std::vector<at::Tensor> TensorsToCopy(const Model& model) {
  std::vector<at::Tensor> tensors = model.ParameterTensors();
  for (const at::Tensor& buffer : model.buffers()) tensors.push_back(buffer);
  return tensors;
}

}  // namespace

ModelCopy CopyOf(const Model& model) {
  const at::NoGradGuard guard;
  ModelCopy copy;
  std::vector<at::Tensor> parts;
  for (const at::Tensor& tensor : TensorsToCopy(model)) {
    if (tensor.is_floating_point()) {
      parts.push_back(tensor.detach().flatten().to(at::kFloat));
    } else {
      copy.counts.push_back(tensor.clone());
    }
  }
  copy.numbers = at::cat(parts);  // a copy, also of a single one
  return copy;
}

void PutInto(const ModelCopy& copy, Model& model) {
  const at::NoGradGuard guard;
  int64_t place = 0;
  size_t count = 0;
  for (const at::Tensor& tensor : TensorsToCopy(model)) {
    if (tensor.is_floating_point()) {
      tensor.copy_(copy.numbers.narrow(0, place, tensor.numel()).view(tensor.sizes()));
      place += tensor.numel();
    } else {
      tensor.copy_(copy.counts[count++]);
    }
  }
}

}  // namespace syncopate::train
