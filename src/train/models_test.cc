#include "train/models.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <set>

#include "train/batch.h"

namespace syncopate::train {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

ModelOptions OptionsFor(const std::string& name) {
  if (ReadsText(name)) return {name, {64}, 80, 1, 0};
  return {name, {3, 32, 32}, 10, 1, 0};
}

at::Tensor InputsFor(const std::string& name, int64_t samples) {
  if (ReadsText(name)) return at::arange(samples * 64, at::kLong).remainder(80).view({samples, 64});
  return at::linspace(-1, 1, samples * 3072).view({samples, 3, 32, 32});
}

int64_t ParametersIn(const Model& model) {
  int64_t count = 0;
  for (const ModelParameter& parameter : model.ordered_parameters()) {
    count += parameter.tensor.numel();
  }
  return count;
}

class ModelTest : public ::testing::TestWithParam<std::string> {};

TEST_P(ModelTest, OneRowOfLogitsForEachLabel) {
  const auto model = MakeModel(OptionsFor(GetParam()));
  ASSERT_TRUE(model.ok()) << model.status();
  const at::Tensor logits = (*model)->Forward(InputsFor(GetParam(), 2));
  const int64_t rows = ReadsText(GetParam()) ? 2 * 64 : 2;
  EXPECT_EQ(logits.sizes(), (at::IntArrayRef{rows, OptionsFor(GetParam()).classes}));
}

TEST_P(ModelTest, SameSeedSameParameters) {
  ModelOptions options = OptionsFor(GetParam());
  const auto one = *MakeModel(options), two = *MakeModel(options);
  options.seed = 2;
  const auto other = *MakeModel(options);
  bool differs = false;
  for (size_t i = 0; i < one->ordered_parameters().size(); ++i) {
    EXPECT_TRUE(one->ordered_parameters()[i].tensor.equal(two->ordered_parameters()[i].tensor));
    differs |= !one->ordered_parameters()[i].tensor.equal(other->ordered_parameters()[i].tensor);
  }
  EXPECT_TRUE(differs);
}

TEST_P(ModelTest, KnowsAllOfItsParameters) {
  const auto model = *MakeModel(OptionsFor(GetParam()));
  std::set<void*> listed;
  int layer = 0;
  for (const ModelParameter& parameter : model->ordered_parameters()) {
    EXPECT_TRUE(listed.insert(parameter.tensor.data_ptr()).second) << parameter.name;
    EXPECT_GE(parameter.layer, layer);
    layer = parameter.layer;
  }
  EXPECT_EQ(layer + 1, static_cast<int>(model->layers().size()));
  for (const auto& parameter : model->named_parameters()) {
    EXPECT_EQ(listed.count(parameter.value().data_ptr()), 1u) << parameter.key();
  }
}

TEST_P(ModelTest, TellsBeforeEachLayerInOrder) {
  const auto model = *MakeModel(OptionsFor(GetParam()));
  std::vector<int> told;
  model->SetBeforeLayer([&](int layer) { told.push_back(layer); });
  model->Forward(InputsFor(GetParam(), 2));
  std::vector<int> expected(model->layers().size());
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(told, expected);
}

// What waits before a layer may change that layer's parameters: the forward pass must see it.
TEST_P(ModelTest, UsesParametersAsTheyAreAfterTelling) {
  const auto model = *MakeModel(OptionsFor(GetParam()));
  const at::NoGradGuard no_grad;
  model->eval();
  model->SetBeforeLayer([&](int layer) {
    for (const ModelParameter& parameter : model->ordered_parameters()) {
      if (parameter.layer == layer) at::Tensor(parameter.tensor).zero_();
    }
  });
  const at::Tensor logits = model->Forward(InputsFor(GetParam(), 2));
  EXPECT_EQ(logits.abs().max().item<float>(), 0);
}

TEST_P(ModelTest, EveryParameterGetsAGradient) {
  const auto model = *MakeModel(OptionsFor(GetParam()));
  const at::Tensor logits = model->Forward(InputsFor(GetParam(), 4));
  Loss(logits, at::arange(logits.size(0), at::kLong).remainder(10)).backward();
  for (const ModelParameter& parameter : model->ordered_parameters()) {
    ASSERT_TRUE(parameter.tensor.grad().defined()) << parameter.name;
    EXPECT_TRUE(at::isfinite(parameter.tensor.grad()).all().item<bool>()) << parameter.name;
  }
}

INSTANTIATE_TEST_SUITE_P(All, ModelTest, ::testing::ValuesIn(ModelNames()),
                         [](const auto& test) { return test.param; });

TEST(ModelsTest, ParameterCountsAreThePublishedOnes) {
  // He et al. 2015, table 6: 0.27 M and 0.46 M; VGG-16's convolutions have 14.7 M.
  struct Count {
    size_t tensors;
    int64_t parameters;
  };
  const std::map<std::string, Count> expected{
      {"mlp", {6, 3072 * 256 + 256 + 256 * 128 + 128 + 128 * 10 + 10}},
      {"cnn", {8, 3 * 20 * 25 + 20 + 20 * 50 * 25 + 50 + 1250 * 500 + 500 + 500 * 10 + 10}},
      {"resnet20", {59, 269'722}},
      {"resnet32", {95, 464'154}},
      {"vgg16", {41, 14'710'464 + 2 * 4'224 + 512 * 10 + 10}},
      {"transformer", {30, 425'552}},
  };
  for (const auto& [name, count] : expected) {
    const auto model = *MakeModel(OptionsFor(name));
    EXPECT_EQ(ParametersIn(*model), count.parameters) << name;
    EXPECT_EQ(model->ordered_parameters().size(), count.tensors) << name;
  }
}

TEST(ModelsTest, TakeTheShapesOfMnist) {
  for (const std::string& name : ModelNames()) {
    if (ReadsText(name)) continue;
    const auto model = MakeModel({name, {1, 28, 28}, 10, 1, 0});
    ASSERT_TRUE(model.ok()) << model.status();
    EXPECT_EQ((*model)->Forward(at::zeros({2, 1, 28, 28})).size(1), 10) << name;
  }
}

TEST(ModelsTest, TransformerDoesNotLookAhead) {
  const auto model = *MakeModel(OptionsFor("transformer"));
  const at::NoGradGuard no_grad;
  at::Tensor text = at::zeros({1, 64}, at::kLong);
  const at::Tensor before = model->Forward(text).clone();
  text[0][40] = 7;
  const at::Tensor after = model->Forward(text);
  EXPECT_TRUE(after.slice(0, 0, 40).equal(before.slice(0, 0, 40)));
  EXPECT_FALSE(after.slice(0, 40).equal(before.slice(0, 40)));
}

TEST(ModelsTest, RefuseWhatTheyCannotTake) {
  EXPECT_EQ(MakeModel({"alexnet", {3, 32, 32}, 10, 1, 0}).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_THAT(MakeModel({"cnn", {64}, 10, 1, 0}).status().message(),
              AllOf(HasSubstr("model cnn"), HasSubstr("reads images")));
  EXPECT_THAT(MakeModel({"transformer", {3, 32, 32}, 10, 1, 0}).status().message(),
              HasSubstr("--data text"));
  EXPECT_THAT(MakeModel({"cnn", {1, 8, 8}, 10, 1, 0}).status().message(), HasSubstr("8 x 8"));
  EXPECT_FALSE(MakeModel({"mlp", {1, 0, 8}, 10, 1, 0}).ok());
  EXPECT_FALSE(MakeModel({"mlp", {1 << 20, 1 << 20, 1 << 20}, 10, 1, 0}).ok());
  EXPECT_FALSE(MakeModel({"mlp", {1, 8, 8}, 1, 1, 0}).ok());
  EXPECT_FALSE(MakeModel({"mlp", {1, 8, 8}, 10, 1, 1.0}).ok());
}

}  // namespace
}  // namespace syncopate::train
