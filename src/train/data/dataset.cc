#include "train/data/dataset.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/bytes.h"
#include "base/status.h"
#include "train/data/dataset_file.h"

namespace syncopate::train {

namespace {

absl::string_view AsText(absl::Span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

absl::Status ValidateInfo(const DatasetInfo& info) {
  if (info.sample_shape.size() != 1 && info.sample_shape.size() != 3) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a sample has 1 dimension (text) or 3 (image), not ", info.sample_shape.size()));
  }
  int64_t elements = 1;
  for (const int64_t extent : info.sample_shape) {
    if (extent < 1 || extent > kSampleElementsMax / elements) {
      return absl::InvalidArgumentError(
          absl::StrCat("an extent of ", extent, " in the shape of a sample; a sample has 1 to ",
                       kSampleElementsMax, " elements"));
    }
    elements *= extent;
  }
  if (info.classes < 2 || info.classes > kClassesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat(info.classes, " classes; there can be 2 to ", kClassesMax));
  }
  const bool text = info.IsText();
  if (info.labels_per_sample != (text ? info.sample_shape[0] : 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat(info.labels_per_sample, " labels for each sample; an image has one, a text ",
                     "one for each place"));
  }
  const size_t channels = text ? 0 : static_cast<size_t>(info.sample_shape[0]);
  if (info.mean.size() != channels || info.deviation.size() != channels) {
    return absl::InvalidArgumentError("each channel needs its mean and its deviation");
  }
  for (size_t i = 0; i < channels; ++i) {
    if (!std::isfinite(info.mean[i]) || !std::isfinite(info.deviation[i]) ||
        info.deviation[i] <= 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("channel ", i, " has mean ", info.mean[i], " and deviation ",
                       info.deviation[i], "; they must be finite, and the deviation positive"));
    }
  }
  return absl::OkStatus();
}

// Text inputs are classes too.
absl::Status ValidateClasses(absl::Span<const uint8_t> values, int classes) {
  if (values.empty()) return absl::OkStatus();
  const int largest = *std::max_element(values.begin(), values.end());
  if (largest < classes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("a label is ", largest, ", but there are ", classes, " classes"));
}

absl::Status ValidateSplit(const DatasetInfo& info, const Split& split) {
  const int64_t largest = kDatasetBytesMax / info.SampleElements();
  if (split.samples < 0 || split.samples > largest) {
    return absl::InvalidArgumentError(
        absl::StrCat(split.samples, " samples; there can be ", largest, " of this shape"));
  }
  const auto inputs = static_cast<int64_t>(split.inputs.size());
  const auto labels = static_cast<int64_t>(split.labels.size());
  if (inputs != split.samples * info.SampleElements() ||
      labels != split.samples * info.labels_per_sample) {
    return absl::InvalidArgumentError(absl::StrCat(split.samples, " samples, but ", inputs,
                                                   " bytes of inputs and ", labels, " labels"));
  }
  SYNCOPATE_RETURN_IF_ERROR(ValidateClasses(split.labels, info.classes));
  return info.IsText() ? ValidateClasses(split.inputs, info.classes) : absl::OkStatus();
}

}  // namespace

int64_t DatasetInfo::SampleElements() const {
  int64_t elements = 1;
  for (const int64_t extent : sample_shape) elements *= extent;
  return elements;
}

absl::Status Dataset::Validate() const {
  const std::string place = absl::StrCat("data ", info.name);
  if (const absl::Status status = ValidateInfo(info); !status.ok()) return At(place, status);
  if (train.samples == 0) return At(place, absl::InvalidArgumentError("nothing to train on"));
  if (const absl::Status status = ValidateSplit(info, train); !status.ok()) {
    return At(absl::StrCat(place, ", to train on"), status);
  }
  return At(absl::StrCat(place, ", to test with"), ValidateSplit(info, test));
}

Digest Dataset::ContentDigest() const {
  std::string parts = EncodeInfo(info);
  for (const Split* split : {&train, &test}) {
    for (const auto bytes : {split->inputs, split->labels}) {
      const Digest digest = DigestOf(AsText(bytes));
      Append(parts, static_cast<uint64_t>(bytes.size()));
      Append(parts, digest.high);
      Append(parts, digest.low);
    }
  }
  return DigestOf(parts);
}

absl::StatusOr<Dataset> MakeDataset(DatasetBytes bytes) {
  auto owner = std::make_shared<DatasetBytes>(std::move(bytes));
  Dataset result;
  result.info = owner->info;
  const int64_t elements = std::max<int64_t>(1, owner->info.SampleElements());
  result.train = {static_cast<int64_t>(owner->train_inputs.size()) / elements, owner->train_inputs,
                  owner->train_labels};
  result.test = {static_cast<int64_t>(owner->test_inputs.size()) / elements, owner->test_inputs,
                 owner->test_labels};
  result.memory = std::move(owner);
  SYNCOPATE_RETURN_IF_ERROR(result.Validate());
  return result;
}

void SetNormalisation(DatasetBytes& bytes) {
  const auto channels = static_cast<size_t>(bytes.info.sample_shape[0]);
  const auto plane = static_cast<size_t>(bytes.info.sample_shape[1] * bytes.info.sample_shape[2]);
  // Counting values keeps it exact, so that it is the same everywhere.
  std::vector<std::array<uint64_t, 256>> counts(channels);
  for (size_t at = 0, channel = 0; at + plane <= bytes.train_inputs.size(); at += plane) {
    for (size_t i = at; i < at + plane; ++i) ++counts[channel][bytes.train_inputs[i]];
    channel = (channel + 1) % channels;
  }
  bytes.info.mean.clear();
  bytes.info.deviation.clear();
  for (const auto& count : counts) {
    uint64_t number = 0, sum = 0, squares = 0;
    for (uint64_t value = 0; value < count.size(); ++value) {
      number += count[value];
      sum += count[value] * value;
      squares += count[value] * value * value;
    }
    const double mean = number == 0 ? 0 : static_cast<double>(sum) / number;
    const double variance = number == 0 ? 0 : static_cast<double>(squares) / number - mean * mean;
    bytes.info.mean.push_back(static_cast<float>(mean / 255));
    // A channel without any difference stays as it is.
    bytes.info.deviation.push_back(variance > 0 ? static_cast<float>(std::sqrt(variance) / 255)
                                                : 1.0f);
  }
}

}  // namespace syncopate::train
