// Makes tensors of samples, computes the loss over them, and evaluates a model.
#ifndef SYNCOPATE_TRAIN_BATCH_H_
#define SYNCOPATE_TRAIN_BATCH_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "absl/types/span.h"
#include "train/data/augment.h"
#include "train/data/dataset.h"
#include "train/models.h"

namespace syncopate::train {

struct Batch {
  at::Tensor inputs;  // float32 [samples, channels, height, width], or int64 [samples, length]
  at::Tensor labels;  // int64, one dimension, as many as rows of logits
};

struct BatchChange {
  Augmentation augmentation;  // of images
  uint64_t seed = 0;
  int64_t epoch = 0;
};

// `samples` are numbers below split.samples. Images are normalised by the data's mean and
// deviation.
Batch MakeBatch(const DatasetInfo& info, const Split& split, absl::Span<const int64_t> samples,
                const BatchChange& change = {});

// The mean over all labels: what to call backward() on.
at::Tensor Loss(const at::Tensor& logits, const at::Tensor& labels);

struct Evaluation {
  double loss = 0;
  double accuracy = 0;  // part of the labels whose logit is the largest
  int64_t samples = 0;
};

// Evaluates the first `samples_max` samples, or all. The model is in training mode afterwards if it
// was before; its buffers and LibTorch's generator stay as they were.
Evaluation Evaluate(Model& model, const DatasetInfo& info, const Split& split,
                    int64_t samples_max = INT64_MAX, int64_t batch_size = 250);

}  // namespace syncopate::train

#endif  // SYNCOPATE_TRAIN_BATCH_H_
