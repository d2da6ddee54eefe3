// A copy of a model's parameters and buffers, for what happens beside training.
#ifndef SYNCOPATE_TRAIN_MODEL_COPY_H_
#define SYNCOPATE_TRAIN_MODEL_COPY_H_

#include <ATen/core/Tensor.h>

#include <vector>

#include "train/models.h"

namespace syncopate::train {

struct ModelCopy {
  at::Tensor numbers;              // all floating parameters and buffers, one after the other
  std::vector<at::Tensor> counts;  // buffers of other types
};

ModelCopy CopyOf(const Model& model);
// `model` is of the same kind as the one that was copied.
void PutInto(const ModelCopy& copy, Model& model);

}  // namespace syncopate::train

#endif  // SYNCOPATE_TRAIN_MODEL_COPY_H_
