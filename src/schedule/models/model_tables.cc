#include "schedule/models/model_tables.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "schedule/models/architectures.h"
#include "schedule/models/model_builder.h"

namespace syncopate::schedule {
namespace {

constexpr Shape kImage = {3, 224, 224};
// The length of a sequence.
constexpr int kTokens = 64;

// The GPU's data sheet: single precision, and its memory.
constexpr DeviceRates kGpu = {13.45e12, 616e9};

constexpr KnownModel kModels[] = {
    {"resnet-152", "32 images of 224 x 224"},   {"densenet-201", "32 images of 224 x 224"},
    {"inception-v4", "32 images of 224 x 224"}, {"bert-base", "64 sequences of 64 tokens"},
    {"vgg-16", "32 images of 224 x 224"},       {"resnet-50", "32 images of 224 x 224"},
};

// `name` is one of kModels.
void AddLayers(absl::string_view name, ModelBuilder& model) {
  if (name == "resnet-152") return AddResNet(kImage, {3, 8, 36, 3}, model);
  if (name == "resnet-50") return AddResNet(kImage, {3, 4, 6, 3}, model);
  if (name == "densenet-201") return AddDenseNet(kImage, {6, 12, 48, 32}, 32, model);
  if (name == "inception-v4") return AddInceptionV4(kImage, model);
  if (name == "vgg-16") return AddVgg16(kImage, model);
  AddBertBase(kTokens, model);
}

struct ComputeTimes {
  double forward = 0;
  double backward = 0;
};

// A third of that is the forward pass, as in ResNet-152.
constexpr ComputeTimes Divided(double seconds) { return {seconds / 3, seconds * 2 / 3}; }

ComputeTimes TimesOf(absl::string_view name, const ModelBuilder& model) {
  constexpr ComputeTimes kResNet152 = {0.091, 0.182};  // section VI-E of the paper
  if (name == "resnet-152") return kResNet152;
  // Table V has S = 32 (t_f + t_b) / t, and Table IV t.
  if (name == "densenet-201") return Divided(22.3 * 0.314 / 32);
  if (name == "inception-v4") return Divided(16.1 * 0.377 / 32);
  if (name == "bert-base") return Divided(10.6 * 0.924 / 32);
  // Not in the paper: the same batch of the same images as ResNet-152, in proportion to the work.
  ModelBuilder resnet_152{"resnet-152"};
  AddLayers("resnet-152", resnet_152);
  const double ratio = model.Seconds(kGpu) / resnet_152.Seconds(kGpu);
  return {kResNet152.forward * ratio, kResNet152.backward * ratio};
}

}  // namespace

absl::Span<const KnownModel> KnownModels() { return kModels; }

absl::StatusOr<TensorTable> MakeModelTable(absl::string_view name) {
  for (const KnownModel& known : kModels) {
    if (known.name != name) continue;
    ModelBuilder model{std::string(name)};
    AddLayers(name, model);
    const ComputeTimes times = TimesOf(name, model);
    return model.Finish(times.forward, times.backward, kGpu);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("\"", name, "\" is not a model with a tensor table; choose one of ",
                   absl::StrJoin(kModels, ", ", [](std::string* out, const KnownModel& known) {
                     absl::StrAppend(out, known.name);
                   })));
}

}  // namespace syncopate::schedule
