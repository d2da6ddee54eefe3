#include "train/batch.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

namespace syncopate::train {

namespace {

using Table = std::array<float, 256>;

// The normalised value of each byte, for each channel.
std::vector<Table> NormalisationTables(const DatasetInfo& info) {
  std::vector<Table> tables(info.mean.size());
  for (size_t c = 0; c < tables.size(); ++c) {
    for (size_t value = 0; value < 256; ++value) {
      tables[c][value] = (static_cast<float>(value) / 255 - info.mean[c]) / info.deviation[c];
    }
  }
  return tables;
}

at::Tensor Images(const DatasetInfo& info, const Split& split, absl::Span<const int64_t> samples,
                  const BatchChange& change) {
  const auto& shape = info.sample_shape;
  at::Tensor out =
      at::empty({static_cast<int64_t>(samples.size()), shape[0], shape[1], shape[2]}, at::kFloat);
  const auto tables = NormalisationTables(info);
  const auto elements = static_cast<size_t>(info.SampleElements());
  const size_t plane = elements / tables.size();
  std::vector<uint8_t> changed(elements);
  float* to = out.data_ptr<float>();
  for (const int64_t sample : samples) {
    auto image = split.inputs.subspan(static_cast<size_t>(sample) * elements, elements);
    if (!change.augmentation.IsNone()) {
      AugmentImage(change.augmentation, shape, change.seed, change.epoch, sample, image,
                   absl::MakeSpan(changed));
      image = changed;
    }
    for (size_t i = 0; i < elements; ++i) *to++ = tables[i / plane][image[i]];
  }
  return out;
}

// Bytes of each sample as numbers.
at::Tensor Numbers(absl::Span<const uint8_t> bytes, absl::Span<const int64_t> samples,
                   int64_t each) {
  at::Tensor out = at::empty({static_cast<int64_t>(samples.size()), each}, at::kLong);
  int64_t* to = out.data_ptr<int64_t>();
  for (const int64_t sample : samples) {
    const auto part = bytes.subspan(static_cast<size_t>(sample * each), static_cast<size_t>(each));
    to = std::copy(part.begin(), part.end(), to);
  }
  return out;
}

}  // namespace

Batch MakeBatch(const DatasetInfo& info, const Split& split, absl::Span<const int64_t> samples,
                const BatchChange& change) {
  Batch batch;
  batch.inputs = info.IsText() ? Numbers(split.inputs, samples, info.SampleElements())
                               : Images(info, split, samples, change);
  batch.labels = Numbers(split.labels, samples, info.labels_per_sample).flatten();
  return batch;
}

at::Tensor Loss(const at::Tensor& logits, const at::Tensor& labels) {
  return at::cross_entropy_loss(logits, labels);
}

// In batches, because the activations of all samples at once may not fit into memory. The mean
// weighs each label alike, also in a last batch that is shorter.
Evaluation Evaluate(Model& model, const DatasetInfo& info, const Split& split, int64_t samples_max,
                    int64_t batch_size) {
  const at::NoGradGuard no_grad;
  const bool training = model.is_training();
  model.eval();
  Evaluation result;
  double loss = 0;
  int64_t right = 0, labels = 0;
  const int64_t all = std::min(split.samples, samples_max);
  for (int64_t first = 0; first < all; first += batch_size) {
    std::vector<int64_t> samples(static_cast<size_t>(std::min(batch_size, all - first)));
    std::iota(samples.begin(), samples.end(), first);
    const Batch batch = MakeBatch(info, split, samples);
    const at::Tensor logits = model.Forward(batch.inputs);
    const auto count = batch.labels.size(0);
    loss += Loss(logits, batch.labels).item<double>() * static_cast<double>(count);
    right += logits.argmax(1).eq(batch.labels).sum().item<int64_t>();
    labels += count;
  }
  model.train(training);
  result.samples = all;
  if (labels > 0) {
    result.loss = loss / static_cast<double>(labels);
    result.accuracy = static_cast<double>(right) / static_cast<double>(labels);
  }
  return result;
}

}  // namespace syncopate::train
