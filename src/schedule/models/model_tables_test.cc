#include "schedule/models/model_tables.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncopate::schedule {
namespace {

using ::testing::HasSubstr;

TEST(ModelTablesTest, TensorsAndParametersAreThoseOfThePublishedArchitectures) {
  struct Published {
    const char* name;
    int tensors;
    uint64_t parameters;
    double seconds;  // forward and backward; 0: not published
  };
  for (const Published& model : {
           Published{"resnet-152", 467, 60'192'808, 0.273},
           Published{"densenet-201", 604, 20'013'928, 0.2188},
           Published{"inception-v4", 449, 42'679'816, 0.1897},
           Published{"bert-base", 206, 110'106'428, 0.3061},
           Published{"vgg-16", 32, 138'357'544, 0},
           Published{"resnet-50", 161, 25'557'032, 0},
       }) {
    const absl::StatusOr<TensorTable> table = MakeModelTable(model.name);
    ASSERT_TRUE(table.ok()) << model.name;
    EXPECT_EQ(std::string(Validate(*table).message()), "") << model.name;
    EXPECT_EQ(table->model, model.name);
    EXPECT_EQ(table->size(), model.tensors) << model.name;
    EXPECT_EQ(table->elements(), model.parameters) << model.name;
    const double seconds = table->forward_seconds() + table->backward_seconds();
    if (model.seconds > 0) {
      EXPECT_NEAR(seconds, model.seconds, 1e-4) << model.name;
    }
    EXPECT_NEAR(table->backward_seconds(), 2 * table->forward_seconds(), 1e-9) << model.name;
    EXPECT_GT(table->forward_seconds(), 0.01) << model.name;
  }
  EXPECT_EQ(KnownModels().size(), 6u);
}

const TensorInfo* Find(const TensorTable& table, absl::string_view name) {
  for (const TensorInfo& tensor : table.tensors) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

TEST(ModelTablesTest, NamesAndSizesAreThoseOfTheUsualImplementations) {
  struct Known {
    const char* model;
    const char* tensor;
    uint64_t elements;
  };
  for (const Known& known : {
           Known{"resnet-152", "layer3.35.conv2.weight", 256 * 256 * 9},
           Known{"resnet-50", "layer4.0.downsample.0.weight", 2048 * 1024},
           Known{"densenet-201", "features.denseblock3.denselayer48.conv1.weight", 1760 * 128},
           Known{"densenet-201", "features.norm5.bias", 1920},
           Known{"vgg-16", "features.28.weight", 512 * 512 * 9},
           Known{"vgg-16", "classifier.0.weight", 25088 * 4096},
           Known{"bert-base", "bert.embeddings.word_embeddings.weight", 30522 * 768},
           Known{"bert-base", "bert.encoder.layer.11.intermediate.dense.weight", 3072 * 768},
           Known{"inception-v4", "last_linear.weight", 1536 * 1000},
       }) {
    const TensorTable table = *MakeModelTable(known.model);
    const TensorInfo* tensor = Find(table, known.tensor);
    ASSERT_NE(tensor, nullptr) << known.tensor;
    EXPECT_EQ(tensor->elements, known.elements) << known.tensor;
  }
}

TEST(ModelTablesTest, TimeGoesToWhatComputes) {
  const TensorTable table = *MakeModelTable("resnet-50");
  // 3 x 3 convolutions of the same stage: 9/4 of the work of the 1 x 1 that widens, and more than
  // the normalization after them.
  const double square = Find(table, "layer3.1.conv2.weight")->backward_seconds;
  EXPECT_GT(square, 1.5 * Find(table, "layer3.1.conv1.weight")->backward_seconds);
  EXPECT_GT(square, Find(table, "layer3.1.bn2.bias")->backward_seconds);
  EXPECT_GT(Find(table, "layer3.1.bn2.bias")->backward_seconds, 0);
  EXPECT_EQ(Find(table, "layer3.1.bn2.weight")->backward_seconds, 0) << "ready with its bias";
}

TEST(ModelTablesTest, UnknownModelsAreRefusedWithTheNamesThatThereAre) {
  EXPECT_THAT(std::string(MakeModelTable("alexnet").status().message()),
              HasSubstr("choose one of resnet-152, densenet-201"));
}

}  // namespace
}  // namespace syncopate::schedule
