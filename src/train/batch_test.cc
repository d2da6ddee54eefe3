#include "train/batch.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "train/training_testing.h"

namespace syncopate::train {
namespace {

using testing::LoneWorker;

TEST(BatchTest, ImagesAreNormalised) {
  DatasetBytes bytes;
  bytes.info.name = "small";
  bytes.info.sample_shape = {2, 1, 2};
  bytes.info.classes = 3;
  bytes.train_inputs = {0, 0, 10, 20, 255, 255, 10, 20};
  bytes.train_labels = {0, 2};
  SetNormalisation(bytes);
  const Dataset data = *MakeDataset(bytes);
  const Batch batch = MakeBatch(data.info, data.train, {1, 0});
  EXPECT_TRUE(batch.labels.equal(at::tensor({2, 0}, at::kLong)));
  EXPECT_TRUE(at::allclose(
      batch.inputs, at::tensor({1.f, 1.f, -1.f, 1.f, -1.f, -1.f, -1.f, 1.f}).view({2, 2, 1, 2})));
}

TEST(BatchTest, TextIsNumbersAndWhatFollows) {
  const Dataset data = *MakeSyntheticText(1000, 1);
  const Batch batch = MakeBatch(data.info, data.train, {3});
  EXPECT_TRUE(batch.inputs.slice(1, 1).equal(batch.labels.view({1, 64}).slice(1, 0, 63)));
}

TEST(BatchTest, AugmentationIsOfEpochAndSample) {
  const Dataset data = *MakeSyntheticImages({{3, 8, 8}, 2, 20, 0, 1});
  const BatchChange change{kFlipAndCrop, 1, 0};
  const Batch both = MakeBatch(data.info, data.train, {4, 5}, change);
  EXPECT_TRUE(both.inputs[1].equal(MakeBatch(data.info, data.train, {5}, change).inputs[0]));
  EXPECT_FALSE(both.inputs.equal(MakeBatch(data.info, data.train, {4, 5}).inputs));
}

TEST(EvaluateTest, CountsWhatIsRight) {
  const Dataset data = *MakeSyntheticImages({{1, 4, 4}, 2, 50, 33, 1});
  const auto model = *MakeModel({"mlp", {1, 4, 4}, 2, 1, 0});
  {  // always says class 1
    const at::NoGradGuard no_grad;
    for (at::Tensor parameter : model->ParameterTensors()) parameter.zero_();
    model->ordered_parameters().back().tensor[1] = 1;
  }
  double ones = 0;
  for (const uint8_t label : data.test.labels) ones += label;
  const Evaluation result = Evaluate(*model, data.info, data.test, INT64_MAX, 10);
  EXPECT_EQ(result.samples, 33);
  EXPECT_DOUBLE_EQ(result.accuracy, ones / 33);
  const double loss = std::log(1 + std::exp(1)) - ones / 33;
  EXPECT_NEAR(result.loss, loss, 1e-6);
  EXPECT_EQ(Evaluate(*model, data.info, data.test, 7).samples, 7);
}

TEST(EvaluateTest, LeavesTheModelAsItWas) {
  LoneWorker worker("resnet20", {}, 1, 0);
  const Checkpoint before = Capture(*worker.model, *worker.optimizer);
  Evaluate(*worker.model, worker.data.info, worker.data.test, 20);
  EXPECT_TRUE(worker.model->is_training());
  const Checkpoint after = Capture(*worker.model, *worker.optimizer);
  EXPECT_EQ(before.generator, after.generator);
  for (size_t i = 0; i < before.tensors.size(); ++i) {
    EXPECT_TRUE(before.tensors[i].tensor.equal(after.tensors[i].tensor)) << before.tensors[i].name;
  }
}

class TrainingTest : public ::testing::TestWithParam<std::string> {};

TEST_P(TrainingTest, TheLossFalls) {
  OptimizerOptions options;
  options.name = ReadsText(GetParam()) ? "adam" : "sgd";
  LoneWorker worker(GetParam(), options, 1, 0);
  double first = 0, last = 0;
  for (int i = 0; i < 40; ++i) {
    const double loss = worker.Step(8, ReadsText(GetParam()) ? 0.005 : 0.02);
    if (i < 5) first += loss / 5;
    if (i >= 35) last += loss / 5;
  }
  EXPECT_LT(last, 0.8 * first);
}

INSTANTIATE_TEST_SUITE_P(Small, TrainingTest,
                         ::testing::Values("mlp", "cnn", "resnet20", "transformer"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace syncopate::train
