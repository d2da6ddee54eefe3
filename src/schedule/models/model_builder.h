// Builds the tensor table of a model from its layers: the tensors and how much each layer computes
// and moves, from which the times of the tensors are derived.
#ifndef SYNCOPATE_SCHEDULE_MODELS_MODEL_BUILDER_H_
#define SYNCOPATE_SCHEDULE_MODELS_MODEL_BUILDER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "model/tensor_table.h"

namespace syncopate::schedule {

// The activations of one sample: channels and an image of them. Tokens with features are an image
// of `tokens` by 1.
struct Shape {
  int channels = 0;
  int height = 0;
  int width = 0;

  double elements() const { return 1.0 * channels * height * width; }
};

struct Kernel {
  int height = 1;
  int width = 1;
  int stride = 1;
  int pad_height = 0;
  int pad_width = 0;
};
// Square, without and with the padding that keeps the size.
Kernel Valid(int size, int stride = 1);
Kernel Same(int size, int stride = 1);

// What a layer's forward does for one sample.
struct LayerWork {
  double flops = 0;
  double bytes = 0;  // activations read and written

  LayerWork& operator+=(const LayerWork& other) {
    flops += other.flops;
    bytes += other.bytes;
    return *this;
  }
};

// What a device computes and moves at best.
struct DeviceRates {
  double flops_per_second = 0;
  double bytes_per_second = 0;

  double Seconds(const LayerWork& work) const {
    return work.flops / flops_per_second + work.bytes / bytes_per_second;
  }
};

// Layers are added in forward order. A layer's work counts for the tensor whose gradient waits for
// all of that layer's backward; a layer without tensors counts for the last tensor before it, whose
// gradient waits for it.
class ModelBuilder {
 public:
  explicit ModelBuilder(std::string model) { table_.model = std::move(model); }

  Shape Convolution(const std::string& name, const Shape& in, int channels, const Kernel& kernel,
                    bool bias = false);
  // Scale and shift of each channel; its two gradients are ready at the same time.
  Shape Normalization(const std::string& name, const Shape& in);
  // y = Wx + b for each place of `in`.
  Shape Linear(const std::string& name, const Shape& in, int features);
  // A table of which one row is read for each of `places`.
  Shape Embedding(const std::string& name, int rows, int features, int places);
  // A tensor by itself: `work` for each sample.
  void Tensor(const std::string& name, uint64_t elements, const LayerWork& work);

  // Without tensors.
  Shape Pool(const Shape& in, const Kernel& kernel);
  Shape PoolAll(const Shape& in);
  void Elementwise(const Shape& in, int inputs = 1);  // activation, addition
  void Work(const LayerWork& work);

  // The forward of one sample at those rates.
  double Seconds(const DeviceRates& rates) const;

  // The table with times that add up to `forward_seconds` and `backward_seconds`, divided among the
  // tensors in proportion to what their work takes at those rates.
  TensorTable Finish(double forward_seconds, double backward_seconds,
                     const DeviceRates& rates) const;

 private:
  TensorTable table_;
  std::vector<LayerWork> work_;  // by tensor
};

}  // namespace syncopate::schedule

#endif  // SYNCOPATE_SCHEDULE_MODELS_MODEL_BUILDER_H_
