#include "train/model_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/serialize.h>

#include <filesystem>

#include "base/parse.h"
#include "nlohmann/json.hpp"
#include "train/trainer_testing.h"

namespace syncopate::train {
namespace {

using ::testing::HasSubstr;

DatasetInfo InfoFor(const std::string& model) {
  DatasetInfo info;
  info.name = "some";
  info.classes = 10;
  if (ReadsText(model)) {
    info.sample_shape = {16};
    info.alphabet = "abcdefghij";
  } else {
    info.sample_shape = {3, 32, 32};
    info.mean = {0.5f, 0.25f, 0.125f};
    info.deviation = {0.25f, 0.25f, 0.5f};
  }
  return info;
}

std::shared_ptr<Model> Make(const std::string& name, uint64_t seed) {
  const DatasetInfo info = InfoFor(name);
  return *MakeModel(
      {.name = name, .sample_shape = info.sample_shape, .classes = info.classes, .seed = seed});
}

// torch::load() knows nothing of ours but the names of the tensors.
TEST(ModelFileTest, EveryModelIsReadBackByTorchLoad) {
  for (const std::string& name : ModelNames()) {
    SCOPED_TRACE(name);
    const TemporaryFolder folder;
    const std::shared_ptr<Model> saved = Make(name, 1), loaded = Make(name, 2);
    for (at::Tensor& buffer : saved->buffers()) buffer.fill_(3);
    ASSERT_FALSE(saved->parameters()[0].equal(loaded->parameters()[0]));
    const absl::Status status = SaveModel(folder.path(), name, InfoFor(name), *saved);
    ASSERT_TRUE(status.ok()) << status;
    std::shared_ptr<::torch::nn::Module> module = loaded;
    ::torch::load(module, folder.path() + "/model.pt");
    const auto expected = saved->named_parameters(), parameters = loaded->named_parameters();
    ASSERT_EQ(parameters.size(), expected.size());
    for (const auto& parameter : expected) {
      EXPECT_TRUE(parameter.value().equal(parameters[parameter.key()])) << parameter.key();
    }
    const auto buffers = loaded->named_buffers();
    for (const auto& buffer : saved->named_buffers()) {
      EXPECT_TRUE(buffer.value().equal(buffers[buffer.key()])) << buffer.key();
    }
  }
}

TEST(ModelFileTest, TheDescriptionSaysWhatTheModelTakes) {
  const TemporaryFolder folder;
  for (const std::string name : {"mlp", "transformer"}) {
    ASSERT_TRUE(SaveModel(folder.path(), name, InfoFor(name), *Make(name, 1)).ok());
    const auto json = nlohmann::json::parse(*ReadFile(folder.path() + "/model.json", 1 << 16));
    EXPECT_EQ(json.at("model"), name);
    EXPECT_EQ(json.at("classes"), 10);
    EXPECT_EQ(json.at("sample_shape"), InfoFor(name).sample_shape);
    EXPECT_EQ(json.value("mean", std::vector<float>()), InfoFor(name).mean);
    EXPECT_EQ(json.value("alphabet", ""), InfoFor(name).alphabet);
  }
  EXPECT_FALSE(std::filesystem::exists(folder.path() + "/model.pt.new"));
}

TEST(ModelFileTest, AFolderThatIsNotThereIsNamedInOneLine) {
  const absl::Status status = SaveModel("/nowhere/at/all", "mlp", InfoFor("mlp"), *Make("mlp", 1));
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("/nowhere/at/all/model.pt"));
  EXPECT_EQ(status.message().find('\n'), absl::string_view::npos);
}

}  // namespace
}  // namespace syncopate::train
