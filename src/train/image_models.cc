// Models for images: a perceptron, LeNet, residual networks for CIFAR-10 (He et al. 2015, section
// 4.2, with shortcuts that have no parameters), VGG-16 with batch norm and one dense layer.
#include <ATen/ATen.h>
#include <torch/nn/init.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "train/model_parts.h"

namespace syncopate::train {

namespace {

using ::torch::nn::BatchNorm2d;
using ::torch::nn::Conv2d;
using ::torch::nn::Conv2dOptions;
using ::torch::nn::Linear;

// For what follows it to be as varied as what comes in.
void SetNormal(at::Tensor weight) {
  ::torch::nn::init::kaiming_normal_(weight, 0.0, ::torch::kFanOut, ::torch::kReLU);
}

Conv2d Conv3x3(int64_t in, int64_t out, int64_t stride) {
  Conv2d conv(Conv2dOptions(in, out, 3).stride(stride).padding(1).bias(false));
  SetNormal(conv->weight);
  return conv;
}

class Mlp final : public Model {
 public:
  explicit Mlp(const ModelOptions& o)
      : dense1_(this, "dense1",
                Linear(o.sample_shape[0] * o.sample_shape[1] * o.sample_shape[2], 256)),
        dense2_(this, "dense2", Linear(256, 128)),
        dense3_(this, "dense3", Linear(128, o.classes)) {}

  at::Tensor Forward(const at::Tensor& inputs) override {
    at::Tensor x = at::relu(dense1_(inputs.flatten(1)));
    x = at::relu(dense2_(x));
    return dense3_(x);
  }

 private:
  Layer<Linear> dense1_, dense2_, dense3_;
};

class Cnn final : public Model {
 public:
  explicit Cnn(const ModelOptions& o)
      : conv1_(this, "conv1", Conv2d(o.sample_shape[0], 20, 5)),
        conv2_(this, "conv2", Conv2d(20, 50, 5)),
        dense1_(this, "dense1",
                Linear(50 * Side(o.sample_shape[1]) * Side(o.sample_shape[2]), 500)),
        dense2_(this, "dense2", Linear(500, o.classes)) {}

  at::Tensor Forward(const at::Tensor& inputs) override {
    at::Tensor x = at::max_pool2d(at::relu(conv1_(inputs)), 2);
    x = at::max_pool2d(at::relu(conv2_(x)), 2);
    x = at::relu(dense1_(x.flatten(1)));
    return dense2_(x);
  }

 private:
  // After both convolutions and both halvings.
  static int64_t Side(int64_t side) { return ((side - 4) / 2 - 4) / 2; }

  Layer<Conv2d> conv1_, conv2_;
  Layer<Linear> dense1_, dense2_;
};

class ResNet final : public Model {
 public:
  ResNet(const ModelOptions& o, int blocks_per_stage)
      : conv_(this, "conv", Conv3x3(o.sample_shape[0], 16, 1)),
        norm_(this, "norm", BatchNorm2d(16)) {
    int64_t channels = 16;
    for (int stage = 1; stage <= 3; ++stage) {
      for (int block = 1; block <= blocks_per_stage; ++block) {
        const int64_t stride = stage > 1 && block == 1 ? 2 : 1;
        blocks_.emplace_back(this, absl::StrCat("stage", stage, "-block", block), channels, stride);
        channels *= stride;
      }
    }
    dense_.emplace_back(this, "dense", Linear(channels, o.classes));
  }

  at::Tensor Forward(const at::Tensor& inputs) override {
    at::Tensor x = at::relu(norm_(conv_(inputs)));
    for (Block& block : blocks_) x = block(x);
    return dense_[0](x.mean({2, 3}));
  }

 private:
  // Two convolutions beside a shortcut; with stride 2 it halves the image and doubles the channels.
  class Block {
   public:
    Block(Model* model, const std::string& name, int64_t channels, int64_t stride)
        : stride_(stride),
          conv1_(model, name + "-conv1", Conv3x3(channels, channels * stride, stride)),
          norm1_(model, name + "-norm1", BatchNorm2d(channels * stride)),
          conv2_(model, name + "-conv2", Conv3x3(channels * stride, channels * stride, 1)),
          norm2_(model, name + "-norm2", BatchNorm2d(channels * stride)) {}

    at::Tensor operator()(const at::Tensor& x) {
      at::Tensor y = at::relu(norm1_(conv1_(x)));
      y = norm2_(conv2_(y));
      return at::relu(y + Shortcut(x));
    }

   private:
    at::Tensor Shortcut(const at::Tensor& x) const {
      if (stride_ == 1) return x;
      const int64_t more = x.size(1) / 2;  // channels of zeros on each side
      const at::Tensor halved = x.slice(2, 0, x.size(2), 2).slice(3, 0, x.size(3), 2);
      return at::constant_pad_nd(halved, {0, 0, 0, 0, more, more});
    }

    int64_t stride_;
    Layer<Conv2d> conv1_;
    Layer<BatchNorm2d> norm1_;
    Layer<Conv2d> conv2_;
    Layer<BatchNorm2d> norm2_;
  };

  Layer<Conv2d> conv_;
  Layer<BatchNorm2d> norm_;
  std::vector<Block> blocks_;
  std::vector<Layer<Linear>> dense_;  // one; made after the blocks, since that is its place
};

class Vgg16 final : public Model {
 public:
  explicit Vgg16(const ModelOptions& o) : dropout_(o.dropout) {
    constexpr int64_t kPool = 0;
    int64_t channels = o.sample_shape[0];
    int number = 0;
    for (const int64_t width :
         {64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512, 0}) {
      if (width == kPool) {
        stages_.back().pool = true;
        continue;
      }
      ++number;
      stages_.push_back({{this, absl::StrCat("conv", number), Conv3x3(channels, width, 1)},
                         {this, absl::StrCat("norm", number), BatchNorm2d(width)},
                         false});
      channels = width;
    }
    dense_.emplace_back(this, "dense", Linear(channels, o.classes));
  }

  at::Tensor Forward(const at::Tensor& inputs) override {
    at::Tensor x = inputs;
    for (Stage& stage : stages_) {
      x = at::relu(stage.norm(stage.conv(x)));
      // Rounding up lets images of 28 x 28 through all five halvings.
      if (stage.pool) x = at::max_pool2d(x, 2, 2, 0, 1, /*ceil_mode=*/true);
    }
    x = x.mean({2, 3});
    if (dropout_ > 0) x = at::dropout(x, dropout_, is_training());
    return dense_[0](x);
  }

 private:
  struct Stage {
    Layer<Conv2d> conv;
    Layer<BatchNorm2d> norm;
    bool pool = false;
  };

  const double dropout_;
  std::vector<Stage> stages_;
  std::vector<Layer<Linear>> dense_;  // one, after the stages
};

}  // namespace

std::shared_ptr<Model> MakeMlp(const ModelOptions& options) {
  return std::make_shared<Mlp>(options);
}
std::shared_ptr<Model> MakeCnn(const ModelOptions& options) {
  return std::make_shared<Cnn>(options);
}
std::shared_ptr<Model> MakeResNet(const ModelOptions& options, int blocks_per_stage) {
  return std::make_shared<ResNet>(options, blocks_per_stage);
}
std::shared_ptr<Model> MakeVgg16(const ModelOptions& options) {
  return std::make_shared<Vgg16>(options);
}

}  // namespace syncopate::train
