#include "train/checkpoint.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/digest.h"
#include "base/parse.h"
#include "train/options/checkpoint_form.h"
#include "train/training_testing.h"

namespace syncopate::train {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::LoneWorker;

OptimizerOptions Named(const std::string& name) {
  OptimizerOptions options;
  options.name = name;
  return options;
}

// With dropout where a model has a place for it, so that the generator's state matters.
LoneWorker MakeWorker(const std::string& model, uint64_t seed) {
  return LoneWorker(model, Named(ReadsText(model) ? "adam" : "sgd"), seed, 0.2);
}

void ExpectSameTensors(const Model& one, const Model& two) {
  for (size_t i = 0; i < one.ordered_parameters().size(); ++i) {
    const ModelParameter& parameter = one.ordered_parameters()[i];
    EXPECT_TRUE(parameter.tensor.equal(two.ordered_parameters()[i].tensor)) << parameter.name;
  }
  const auto two_buffers = two.named_buffers();
  for (const auto& buffer : one.named_buffers()) {
    EXPECT_TRUE(buffer.value().equal(two_buffers[buffer.key()])) << buffer.key();
  }
}

class ResumeTest : public ::testing::TestWithParam<std::string> {};

TEST_P(ResumeTest, GoesOnBitForBit) {
  constexpr int kSteps = 3;
  constexpr double kRate = 0.01;
  const std::string path =
      ::testing::TempDir() + "resume-" + std::to_string(getpid()) + "-" + GetParam() + ".ckpt";
  LoneWorker straight = MakeWorker(GetParam(), 1);
  for (int i = 0; i < kSteps; ++i) straight.Step(4, kRate);
  Checkpoint saved = Capture(*straight.model, *straight.optimizer);
  saved.model = GetParam();
  saved.config = "c";
  saved.iteration = kSteps;
  saved.sampler = straight.sampler.position();
  ASSERT_TRUE(SaveCheckpoint(path, saved).ok());
  std::vector<double> losses;
  for (int i = 0; i < kSteps; ++i) losses.push_back(straight.Step(4, kRate));

  // Another seed: all that matters must come from the file. Only the order of samples is the job's.
  LoneWorker resumed = MakeWorker(GetParam(), 2);
  resumed.Step(4, kRate);
  const auto loaded = LoadCheckpoint(path);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->iteration, kSteps);
  const absl::Status restored =
      Restore(*loaded, GetParam(), "c", *resumed.model, *resumed.optimizer);
  ASSERT_TRUE(restored.ok()) << restored;
  ASSERT_TRUE(resumed.sampler.SetPosition(loaded->sampler).ok());
  for (int i = 0; i < kSteps; ++i) EXPECT_EQ(resumed.Step(4, kRate), losses[i]) << i;
  ExpectSameTensors(*straight.model, *resumed.model);
  unlink(path.c_str());
}

INSTANTIATE_TEST_SUITE_P(All, ResumeTest, ::testing::ValuesIn(ModelNames()),
                         [](const auto& test) { return test.param; });

class CheckpointTest : public ::testing::Test {
 protected:
  ~CheckpointTest() override { unlink(path_.c_str()); }
  CheckpointTest() : worker_("mlp", {}, 1, 0) {
    worker_.Step(4, 0.1);
    checkpoint_ = Capture(*worker_.model, *worker_.optimizer);
    checkpoint_.model = "mlp";
    checkpoint_.config = "c";
  }
  absl::Status RestoreInto(LoneWorker& worker, const std::string& config = "c") {
    return Restore(checkpoint_, "mlp", config, *worker.model, *worker.optimizer);
  }

  LoneWorker worker_;
  Checkpoint checkpoint_;
  const std::string path_ = ::testing::TempDir() + "checkpoint-" + std::to_string(getpid());
};

TEST_F(CheckpointTest, IsOfItsTimeWhateverFollows) {
  const at::Tensor then = checkpoint_.tensors[0].tensor.clone();
  worker_.Step(4, 0.1);
  EXPECT_TRUE(then.equal(checkpoint_.tensors[0].tensor));
  ASSERT_TRUE(RestoreInto(worker_).ok());
  worker_.Step(4, 0.1);
  EXPECT_TRUE(then.equal(checkpoint_.tensors[0].tensor));
}

TEST_F(CheckpointTest, AnotherJobIsRefusedAndNothingChanges) {
  LoneWorker other("mlp", {}, 3, 0);
  const auto before = other.model->ordered_parameters()[0].tensor.clone();
  EXPECT_THAT(RestoreInto(other, "d").message(), AllOf(HasSubstr("config c"), HasSubstr("has d")));
  EXPECT_THAT(Restore(checkpoint_, "cnn", "c", *other.model, *other.optimizer).message(),
              AllOf(HasSubstr("model mlp"), HasSubstr("cnn")));
  LoneWorker adam("mlp", Named("adam"), 3, 0);
  EXPECT_EQ(RestoreInto(adam).code(), absl::StatusCode::kFailedPrecondition);
  LoneWorker cnn("cnn", {}, 3, 0);
  EXPECT_EQ(Restore(checkpoint_, "mlp", "c", *cnn.model, *cnn.optimizer).code(),
            absl::StatusCode::kFailedPrecondition);
  checkpoint_.generator = "short";
  EXPECT_THAT(RestoreInto(other).message(), HasSubstr("generator"));
  checkpoint_.tensors.push_back({"parameter/extra", at::ones({1})});
  EXPECT_THAT(RestoreInto(other).message(), HasSubstr("parameter/extra"));
  EXPECT_TRUE(before.equal(other.model->ordered_parameters()[0].tensor));
  EXPECT_EQ(other.optimizer->states()[0].updates, 0);
}

TEST_F(CheckpointTest, DamageIsNoticed) {
  ASSERT_TRUE(SaveCheckpoint(path_, checkpoint_).ok());
  const std::string good = *ReadFile(path_, kCheckpointBytesMax);
  for (size_t at = 0; at < good.size(); at += good.size() / 20) {
    std::string bad = good;
    bad[at] ^= 4;
    ASSERT_TRUE(WriteFile(path_, bad).ok());
    const auto loaded = LoadCheckpoint(path_);
    EXPECT_EQ(loaded.status().code(), absl::StatusCode::kDataLoss) << at;
    EXPECT_THAT(loaded.status().message(), HasSubstr(path_));
  }
  for (const size_t bytes : {size_t{0}, size_t{7}, size_t{24}, good.size() / 2, good.size() - 1}) {
    ASSERT_TRUE(WriteFile(path_, good.substr(0, bytes)).ok());
    EXPECT_EQ(LoadCheckpoint(path_).status().code(), absl::StatusCode::kDataLoss) << bytes;
  }
  EXPECT_EQ(LoadCheckpoint(path_ + ".none").status().code(), absl::StatusCode::kNotFound);
}

// A digest guards against accidents only: what is inside must hold up by itself.
TEST_F(CheckpointTest, WrongLengthsUnderARightDigestAreRefused) {
  checkpoint_.generator = "g";
  checkpoint_.tensors = {{"t", at::ones({2, 3})}};
  ASSERT_TRUE(SaveCheckpoint(path_, checkpoint_).ok());
  const std::string good = *ReadFile(path_, kCheckpointBytesMax);
  int refused = 0;
  for (size_t at = 8; at + 16 < good.size(); ++at) {
    std::string bad = good.substr(0, good.size() - 16);
    bad[at] = '\xff';
    const Digest digest = DigestOf(bad);
    Append(bad, digest.high);
    Append(bad, digest.low);
    ASSERT_TRUE(WriteFile(path_, bad).ok());
    if (!LoadCheckpoint(path_).ok()) ++refused;
  }
  EXPECT_GT(refused, 30);  // what is left are bytes of texts, numbers and values
}

TEST_F(CheckpointTest, CannotBeWrittenSaysWhere) {
  const std::string path = ::testing::TempDir() + "no-such-folder/a.ckpt";
  EXPECT_THAT(SaveCheckpoint(path, checkpoint_).message(), HasSubstr(path));
}

}  // namespace
}  // namespace syncopate::train
