// The models that `syncopate train` trains, as lists of layers.
//
// LibTorch's modules in C++ have no forward hooks, so each model says itself when it comes to a
// layer: a caller can wait there until the layer's parameters are up to date. Layers, and with them
// parameters, are numbered in the order of the forward pass; the backward pass ends with number 0.
#ifndef SYNCOPATE_TRAIN_MODELS_H_
#define SYNCOPATE_TRAIN_MODELS_H_

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace syncopate::train {

struct ModelOptions {
  std::string name;                   // one of ModelNames()
  std::vector<int64_t> sample_shape;  // {channels, height, width}, or {length} for a transformer
  int classes = 0;
  uint64_t seed = 1;
  // Chance of a value to be left out, where a model (vgg16, transformer) has a place for it. With
  // more than 0, several workers do not compute exactly what one would.
  double dropout = 0;
};

struct ModelParameter {
  std::string name;  // "conv1.weight"
  at::Tensor tensor;
  int layer = 0;
};

// Not thread-safe, except that a layer's parameters may change until BeforeLayer of it returns.
class Model : public ::torch::nn::Module {
 public:
  Model(const Model&) = delete;

  // Inputs [samples, ...] as MakeBatch() gives them; one row of `classes` logits for each label.
  virtual at::Tensor Forward(const at::Tensor& inputs) = 0;

  const std::vector<std::string>& layers() const { return layers_; }
  // In the order of layers, and within a layer as LibTorch has them (weight, bias).
  const std::vector<ModelParameter>& ordered_parameters() const { return parameters_; }
  std::vector<at::Tensor> ParameterTensors() const;

  // Called by Forward() right before it uses the parameters of that layer; every layer once in each
  // Forward(), in order. Also in evaluation.
  void SetBeforeLayer(std::function<void(int layer)> before) { before_layer_ = std::move(before); }

 protected:
  Model() = default;

 private:
  template <typename Holder>
  friend class Layer;
  int AddLayer(const std::string& name, std::shared_ptr<::torch::nn::Module> module);
  void BeforeLayer(int layer) const {
    if (before_layer_) before_layer_(layer);
  }

  std::vector<std::string> layers_;
  std::vector<ModelParameter> parameters_;
  std::function<void(int)> before_layer_;
};

// "mlp", "cnn", "resnet20", "resnet32", "vgg16", "transformer".
std::vector<std::string> ModelNames();
// Whether a model reads text rather than images.
bool ReadsText(const std::string& model);

// Seeds LibTorch's generator: the same options give the same parameters, also when threads make
// models at once. NotFound for an unknown name, InvalidArgument for a shape that the model cannot
// take.
absl::StatusOr<std::shared_ptr<Model>> MakeModel(const ModelOptions& options);

}  // namespace syncopate::train

#endif  // SYNCOPATE_TRAIN_MODELS_H_
