// What the files of models share; only they include it.
#ifndef SYNCOPATE_TRAIN_MODEL_PARTS_H_
#define SYNCOPATE_TRAIN_MODEL_PARTS_H_

#include <memory>
#include <string>
#include <utility>

#include "train/models.h"

namespace syncopate::train {

// A module of LibTorch in a model, which tells the model before it runs. Declare layers in the
// order in which Forward() uses them: that is what numbers them.
template <typename Holder>
class Layer {
 public:
  Layer(Model* model, const std::string& name, Holder module)
      : model_(model), index_(model->AddLayer(name, module.ptr())), module_(std::move(module)) {}

  at::Tensor operator()(const at::Tensor& input) {
    model_->BeforeLayer(index_);
    return module_->forward(input);
  }

 private:
  Model* model_;
  int index_;
  Holder module_;
};

// The options are valid for them.
std::shared_ptr<Model> MakeMlp(const ModelOptions& options);
std::shared_ptr<Model> MakeCnn(const ModelOptions& options);
std::shared_ptr<Model> MakeResNet(const ModelOptions& options, int blocks_per_stage);
std::shared_ptr<Model> MakeVgg16(const ModelOptions& options);
std::shared_ptr<Model> MakeTransformer(const ModelOptions& options);

}  // namespace syncopate::train

#endif  // SYNCOPATE_TRAIN_MODEL_PARTS_H_
