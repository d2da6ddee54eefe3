// What each kind of layer computes and moves for one sample. Operations count a multiplication and
// an addition as two; bytes are the activations that are read and written. Weights are left out of
// the bytes, because a batch reads them once.
#include "schedule/models/model_builder.h"

#include "absl/strings/str_cat.h"

namespace syncopate::schedule {
namespace {

constexpr double kBytes = 4;  // of an activation

// The shape after a kernel has moved over the image, rounded down as PyTorch does.
Shape Slide(const Shape& in, int channels, const Kernel& kernel) {
  return {channels, (in.height + 2 * kernel.pad_height - kernel.height) / kernel.stride + 1,
          (in.width + 2 * kernel.pad_width - kernel.width) / kernel.stride + 1};
}

}  // namespace

Kernel Valid(int size, int stride) { return {size, size, stride, 0, 0}; }
Kernel Same(int size, int stride) { return {size, size, stride, size / 2, size / 2}; }

Shape ModelBuilder::Convolution(const std::string& name, const Shape& in, int channels,
                                const Kernel& kernel, bool bias) {
  const Shape out = Slide(in, channels, kernel);
  const uint64_t elements = uint64_t{1} * static_cast<uint64_t>(in.channels * channels) *
                            static_cast<uint64_t>(kernel.height * kernel.width);
  Tensor(absl::StrCat(name, ".weight"), elements,
         {2.0 * static_cast<double>(elements) * out.height * out.width,
          kBytes * (in.elements() + out.elements())});
  // The gradient of the bias is a by-product of the layer's backward, so it has no work of its own.
  if (bias) Tensor(absl::StrCat(name, ".bias"), static_cast<uint64_t>(channels), {});
  return out;
}

Shape ModelBuilder::Normalization(const std::string& name, const Shape& in) {
  Tensor(absl::StrCat(name, ".weight"), static_cast<uint64_t>(in.channels), {});
  // Read for the statistics, read and written to apply them.
  Tensor(absl::StrCat(name, ".bias"), static_cast<uint64_t>(in.channels),
         {4 * in.elements(), kBytes * 3 * in.elements()});
  return in;
}

Shape ModelBuilder::Linear(const std::string& name, const Shape& in, int features) {
  const Shape out{features, in.height, in.width};
  const uint64_t elements =
      uint64_t{1} * static_cast<uint64_t>(in.channels) * static_cast<uint64_t>(features);
  Tensor(absl::StrCat(name, ".weight"), elements,
         {2.0 * static_cast<double>(elements) * in.height * in.width,
          kBytes * (in.elements() + out.elements())});
  Tensor(absl::StrCat(name, ".bias"), static_cast<uint64_t>(features), {});
  return out;
}

Shape ModelBuilder::Embedding(const std::string& name, int rows, int features, int places) {
  const Shape out{features, places, 1};
  Tensor(absl::StrCat(name, ".weight"),
         static_cast<uint64_t>(rows) * static_cast<uint64_t>(features),
         {0, kBytes * 2 * out.elements()});
  return out;
}

void ModelBuilder::Tensor(const std::string& name, uint64_t elements, const LayerWork& work) {
  table_.tensors.push_back({name, elements, DataType::kFloat32, 0, 0});
  work_.push_back(work);
}

Shape ModelBuilder::Pool(const Shape& in, const Kernel& kernel) {
  const Shape out = Slide(in, in.channels, kernel);
  Work({out.elements() * kernel.height * kernel.width, kBytes * (in.elements() + out.elements())});
  return out;
}

Shape ModelBuilder::PoolAll(const Shape& in) {
  Work({in.elements(), kBytes * in.elements()});
  return {in.channels, 1, 1};
}

void ModelBuilder::Elementwise(const Shape& in, int inputs) {
  Work({in.elements(), kBytes * (inputs + 1) * in.elements()});
}

void ModelBuilder::Work(const LayerWork& work) { work_.back() += work; }

double ModelBuilder::Seconds(const DeviceRates& rates) const {
  double sum = 0;
  for (const LayerWork& work : work_) sum += rates.Seconds(work);
  return sum;
}

// Rates at which nothing really runs only divide the measured times among the tensors, so that what
// matters is their proportion.
TensorTable ModelBuilder::Finish(double forward_seconds, double backward_seconds,
                                 const DeviceRates& rates) const {
  const double all = Seconds(rates);
  TensorTable table = table_;
  for (size_t i = 0; i < work_.size(); ++i) {
    const double share = rates.Seconds(work_[i]) / all;
    table.tensors[i].forward_seconds = forward_seconds * share;
    table.tensors[i].backward_seconds = backward_seconds * share;
  }
  return table;
}

}  // namespace syncopate::schedule
