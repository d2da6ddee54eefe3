#include "train/models.h"

#include <torch/utils.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/mutex.h"
#include "base/status.h"
#include "train/data/dataset.h"
#include "train/model_parts.h"

namespace syncopate::train {

namespace {

struct Entry {
  const char* name;
  size_t dimensions;  // of a sample
  int64_t side_min;   // of an image
  std::shared_ptr<Model> (*make)(const ModelOptions&);
};

constexpr Entry kModels[] = {
    {"mlp", 3, 1, MakeMlp},
    {"cnn", 3, 16, MakeCnn},
    {"resnet20", 3, 4, [](const ModelOptions& options) { return MakeResNet(options, 3); }},
    {"resnet32", 3, 4, [](const ModelOptions& options) { return MakeResNet(options, 5); }},
    {"vgg16", 3, 17, MakeVgg16},
    {"transformer", 1, 1, MakeTransformer},
};

const Entry* Find(const std::string& name) {
  for (const Entry& entry : kModels) {
    if (name == entry.name) return &entry;
  }
  return nullptr;
}

absl::Status CheckShape(const Entry& entry, const ModelOptions& options) {
  const std::vector<int64_t>& shape = options.sample_shape;
  if (shape.size() != entry.dimensions) {
    return absl::InvalidArgumentError(
        absl::StrCat("it reads ", entry.dimensions == 1 ? "text" : "images", ", and the data are ",
                     shape.size() == 1 ? "text" : "images",
                     entry.dimensions == 1 ? "; use --data text or synthetic-text" : ""));
  }
  int64_t elements = 1;
  for (const int64_t extent : shape) {
    if (extent < 1 || extent > kSampleElementsMax / elements) {
      return absl::InvalidArgumentError(
          absl::StrCat("samples of shape [", absl::StrJoin(shape, ", "), "]"));
    }
    elements *= extent;
  }
  if (shape.size() == 3 && (shape[1] < entry.side_min || shape[2] < entry.side_min)) {
    return absl::InvalidArgumentError(absl::StrCat("images of ", shape[1], " x ", shape[2],
                                                   " pixels are too small; it needs ",
                                                   entry.side_min, " x ", entry.side_min));
  }
  if (options.classes < 2 || options.classes > kClassesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.classes, " classes; there can be 2 to ", kClassesMax));
  }
  if (!(options.dropout >= 0 && options.dropout < 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("dropout ", options.dropout, "; expected at least 0 and less than 1"));
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<at::Tensor> Model::ParameterTensors() const {
  std::vector<at::Tensor> tensors;
  for (const ModelParameter& parameter : parameters_) tensors.push_back(parameter.tensor);
  return tensors;
}

int Model::AddLayer(const std::string& name, std::shared_ptr<::torch::nn::Module> module) {
  const int layer = static_cast<int>(layers_.size());
  layers_.push_back(name);
  for (const auto& parameter : module->named_parameters()) {
    parameters_.push_back({absl::StrCat(name, ".", parameter.key()), parameter.value(), layer});
  }
  register_module(name, std::move(module));
  return layer;
}

std::vector<std::string> ModelNames() {
  std::vector<std::string> names;
  for (const Entry& entry : kModels) names.emplace_back(entry.name);
  return names;
}

bool ReadsText(const std::string& model) {
  const Entry* entry = Find(model);
  return entry != nullptr && entry->dimensions == 1;
}

absl::StatusOr<std::shared_ptr<Model>> MakeModel(const ModelOptions& options) {
  const Entry* entry = Find(options.name);
  if (entry == nullptr) {
    return absl::NotFoundError(absl::StrCat("there is no model \"", options.name, "\"; there are ",
                                            absl::StrJoin(ModelNames(), ", ")));
  }
  if (const absl::Status status = CheckShape(*entry, options); !status.ok()) {
    return At(absl::StrCat("model ", options.name), status);
  }
  try {
    static Mutex generator;  // there is one in a process, and it must be ours from seed to end
    const MutexLock lock(&generator);
    ::torch::manual_seed(options.seed);
    return entry->make(options);
  } catch (const std::exception& error) {
    return absl::ResourceExhaustedError(
        absl::StrCat("model ", options.name, ": LibTorch cannot make it: ", error.what()));
  }
}

}  // namespace syncopate::train
