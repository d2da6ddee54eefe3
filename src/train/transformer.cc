// A small transformer that predicts each next character of a text, from plain layers so that each
// has its own parameters.
#include <ATen/ATen.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <cmath>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "train/model_parts.h"

namespace syncopate::train {

namespace {

using ::torch::nn::Embedding;
using ::torch::nn::LayerNorm;
using ::torch::nn::LayerNormOptions;
using ::torch::nn::Linear;

constexpr int64_t kWidth = 128;
constexpr int64_t kHeads = 4;
constexpr int kBlocks = 2;

// Embeddings as LibTorch makes them are too large for a model this small.
Embedding SmallEmbedding(int64_t count) {
  Embedding embedding(count, kWidth);
  const at::NoGradGuard no_grad;
  embedding->weight.normal_(0, 0.02);
  return embedding;
}

LayerNorm Norm() { return LayerNorm(LayerNormOptions({kWidth})); }

// Attention to what came before, then a small perceptron; both beside a shortcut.
class Block {
 public:
  Block(Model* model, const std::string& name, double dropout)
      : model_(model),
        dropout_(dropout),
        norm1_(model, name + "-norm1", Norm()),
        query_key_value_(model, name + "-qkv", Linear(kWidth, 3 * kWidth)),
        join_(model, name + "-join", Linear(kWidth, kWidth)),
        norm2_(model, name + "-norm2", Norm()),
        dense1_(model, name + "-dense1", Linear(kWidth, 4 * kWidth)),
        dense2_(model, name + "-dense2", Linear(4 * kWidth, kWidth)) {}

  at::Tensor operator()(const at::Tensor& x, const at::Tensor& mask) {
    const at::Tensor y = x + Drop(Attend(norm1_(x), mask));
    return y + Drop(dense2_(at::gelu(dense1_(norm2_(y)))));
  }

 private:
  // x: [samples, length, width]
  at::Tensor Attend(const at::Tensor& x, const at::Tensor& mask) {
    const int64_t samples = x.size(0), length = x.size(1);
    // [3, samples, heads, length, width of a head]
    const at::Tensor parts = query_key_value_(x)
                                 .view({samples, length, 3, kHeads, kWidth / kHeads})
                                 .permute({2, 0, 3, 1, 4});
    at::Tensor scores = at::matmul(parts[0], parts[1].transpose(-2, -1));
    scores = scores / std::sqrt(static_cast<double>(kWidth / kHeads)) + mask;
    const at::Tensor seen = at::matmul(at::softmax(scores, -1), parts[2]);
    return join_(seen.transpose(1, 2).reshape({samples, length, kWidth}));
  }
  at::Tensor Drop(const at::Tensor& x) const {
    return dropout_ > 0 ? at::dropout(x, dropout_, model_->is_training()) : x;
  }

  Model* model_;
  double dropout_;
  Layer<LayerNorm> norm1_;
  Layer<Linear> query_key_value_, join_;
  Layer<LayerNorm> norm2_;
  Layer<Linear> dense1_, dense2_;
};

class Transformer final : public Model {
 public:
  explicit Transformer(const ModelOptions& o)
      : characters_(this, "characters", SmallEmbedding(o.classes)),
        places_(this, "places", SmallEmbedding(o.sample_shape[0])) {
    for (int block = 1; block <= kBlocks; ++block) {
      blocks_.emplace_back(this, absl::StrCat("block", block), o.dropout);
    }
    norm_.emplace_back(this, "norm", Norm());
    dense_.emplace_back(this, "dense", Linear(kWidth, o.classes));
    // Minus infinity where a place would look at one after it.
    mask_ =
        at::full({o.sample_shape[0], o.sample_shape[0]}, -std::numeric_limits<float>::infinity())
            .triu(1);
  }

  at::Tensor Forward(const at::Tensor& inputs) override {
    const int64_t length = inputs.size(1);
    at::Tensor x = characters_(inputs);  // in two statements, since layers run in order
    x = x + places_(at::arange(length, at::kLong));
    const at::Tensor mask = mask_.slice(0, 0, length).slice(1, 0, length);
    for (Block& block : blocks_) x = block(x, mask);
    return dense_[0](norm_[0](x)).flatten(0, 1);
  }

 private:
  Layer<Embedding> characters_, places_;
  std::vector<Block> blocks_;
  // One each, after the blocks.
  std::vector<Layer<LayerNorm>> norm_;
  std::vector<Layer<Linear>> dense_;
  at::Tensor mask_;
};

}  // namespace

std::shared_ptr<Model> MakeTransformer(const ModelOptions& options) {
  return std::make_shared<Transformer>(options);
}

}  // namespace syncopate::train
