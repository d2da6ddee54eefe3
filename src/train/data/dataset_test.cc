#include "train/data/dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "absl/status/statusor.h"
#include "base/parse.h"
#include "train/data/dataset_file.h"
#include "train/data/synthetic.h"

namespace syncopate::train {
namespace {

using ::testing::HasSubstr;

DatasetBytes Small() {
  DatasetBytes bytes;
  bytes.info.name = "small";
  bytes.info.sample_shape = {2, 1, 2};
  bytes.info.classes = 3;
  bytes.train_inputs = {0, 0, 10, 20, 255, 255, 10, 20};
  bytes.train_labels = {0, 2};
  bytes.test_inputs = {1, 2, 3, 4};
  bytes.test_labels = {1};
  SetNormalisation(bytes);
  return bytes;
}

TEST(DatasetTest, NormalisationIsOfEachChannel) {
  const DatasetBytes bytes = Small();
  EXPECT_FLOAT_EQ(bytes.info.mean[0], 0.5f);
  EXPECT_FLOAT_EQ(bytes.info.deviation[0], 0.5f);
  EXPECT_FLOAT_EQ(bytes.info.mean[1], 15.0f / 255);
  EXPECT_FLOAT_EQ(bytes.info.deviation[1], 5.0f / 255);
}

TEST(DatasetTest, RefusesWhatDoesNotFitTogether) {
  EXPECT_TRUE(MakeDataset(Small()).ok());
  const auto refused = [](auto change) {
    DatasetBytes bytes = Small();
    change(bytes);
    return !MakeDataset(std::move(bytes)).ok();
  };
  EXPECT_TRUE(refused([](DatasetBytes& b) { b.train_labels = {0, 3}; }));
  EXPECT_TRUE(refused([](DatasetBytes& b) { b.train_labels = {0}; }));
  EXPECT_TRUE(refused([](DatasetBytes& b) { b.test_inputs.push_back(1); }));
  EXPECT_TRUE(refused([](DatasetBytes& b) { b.info.classes = 1; }));
  EXPECT_TRUE(refused([](DatasetBytes& b) { b.info.classes = 257; }));
  EXPECT_TRUE(refused([](DatasetBytes& b) { b.info.sample_shape = {2, 2}; }));
  EXPECT_TRUE(refused([](DatasetBytes& b) { b.info.sample_shape = {2, 0, 2}; }));
  EXPECT_TRUE(refused([](DatasetBytes& b) { b.info.deviation[1] = 0; }));
  EXPECT_TRUE(refused([](DatasetBytes& b) { b.info.mean.pop_back(); }));
  EXPECT_TRUE(refused([](DatasetBytes& b) { b.info.labels_per_sample = 2; }));
  EXPECT_TRUE(refused([](DatasetBytes& b) {
    b.train_inputs.clear();
    b.train_labels.clear();
  }));
}

TEST(DatasetTest, DigestSeesEveryByte) {
  const Digest digest = MakeDataset(Small())->ContentDigest();
  EXPECT_EQ(MakeDataset(Small())->ContentDigest(), digest);
  DatasetBytes bytes = Small();
  bytes.test_labels[0] = 2;
  EXPECT_NE(MakeDataset(std::move(bytes))->ContentDigest().ToString(), digest.ToString());
}

TEST(DatasetFileTest, ReadsWhatItWrote) {
  const std::string path = ::testing::TempDir() + "round-" + std::to_string(getpid());
  for (const auto& made : {MakeDataset(Small()), MakeSyntheticText(5000, 1)}) {
    ASSERT_TRUE(made.ok()) << made.status();
    ASSERT_TRUE(WriteDatasetFile(path, *made).ok());
    const auto read = ReadDatasetFile(path);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->info, made->info);
    EXPECT_EQ(read->train.inputs, made->train.inputs);
    EXPECT_EQ(read->test.labels, made->test.labels);
    EXPECT_EQ(read->ContentDigest(), made->ContentDigest());
  }
  unlink(path.c_str());
}

TEST(DatasetFileTest, AMissingFileIsNotFound) {
  EXPECT_EQ(ReadDatasetFile("/nowhere/a.data").status().code(), absl::StatusCode::kNotFound);
}

TEST(DatasetFileTest, EveryDamageIsNoticed) {
  const std::string path = ::testing::TempDir() + "damaged-" + std::to_string(getpid());
  ASSERT_TRUE(WriteDatasetFile(path, *MakeDataset(Small())).ok());
  const std::string good = *ReadFile(path, 1 << 20);
  for (size_t i = 0; i < good.size(); ++i) {
    for (const char bit : {'\x01', '\x80'}) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ bit);
      ASSERT_TRUE(WriteFile(path, bad).ok());
      const auto read = ReadDatasetFile(path);
      ASSERT_EQ(read.status().code(), absl::StatusCode::kDataLoss) << "byte " << i;
      ASSERT_THAT(read.status().message(), HasSubstr(path));
    }
  }
  for (size_t bytes = 1; bytes < good.size(); ++bytes) {
    ASSERT_TRUE(WriteFile(path, good.substr(0, bytes)).ok());
    ASSERT_EQ(ReadDatasetFile(path).status().code(), absl::StatusCode::kDataLoss) << bytes;
  }
  ASSERT_TRUE(WriteFile(path, good + "x").ok());
  EXPECT_EQ(ReadDatasetFile(path).status().code(), absl::StatusCode::kDataLoss);
  unlink(path.c_str());
}

TEST(SyntheticTest, SameSeedSameDataAndEveryClass) {
  SyntheticImages request{{1, 8, 8}, 4, 200, 50, 7};
  const auto one = MakeSyntheticImages(request);
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_EQ(one->ContentDigest(), MakeSyntheticImages(request)->ContentDigest());
  request.seed = 8;
  EXPECT_NE(one->ContentDigest().ToString(),
            MakeSyntheticImages(request)->ContentDigest().ToString());
  std::vector<int> count(4);
  for (const uint8_t label : one->train.labels) ++count[label];
  for (const int c : count) EXPECT_GT(c, 20);
}

TEST(SyntheticTest, RefusesWhatCannotBe) {
  EXPECT_FALSE(MakeSyntheticImages({{3, 32}, 10, 10, 10, 1}).ok());
  EXPECT_FALSE(MakeSyntheticImages({{3, 0, 32}, 10, 10, 10, 1}).ok());
  EXPECT_FALSE(MakeSyntheticImages({{3, 1 << 20, 1 << 20}, 10, 10, 10, 1}).ok());
  EXPECT_FALSE(MakeSyntheticImages({{3, 8, 8}, 1, 10, 10, 1}).ok());
  EXPECT_FALSE(MakeSyntheticImages({{3, 8, 8}, 10, 0, 10, 1}).ok());
  EXPECT_FALSE(MakeSyntheticImages({{3, 8, 8}, 10, int64_t{1} << 60, 10, 1}).ok());
  EXPECT_FALSE(MakeSyntheticText(10, 1).ok());
}

}  // namespace
}  // namespace syncopate::train
