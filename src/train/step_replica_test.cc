// Every kind of update on real tensors, against plain arithmetic.
#include "train/step_replica.h"

#include <ATen/Functions.h>

#include <cstring>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "model/tensor_layout.h"

namespace syncopate::train {
namespace {

using strategy::ApplyUpdate;
using strategy::Update;

constexpr double kRate = 0.25;

class StepReplicaTest : public ::testing::Test {
 protected:
  StepReplicaTest() {
    table_.model = "test";
    for (int i = 0; i < 2; ++i) {
      tensors_.push_back(at::full({3}, 8.0 * (i + 1)));
      tensors_.back().mutable_grad() = at::full({3}, 4.0);
      table_.tensors.push_back({.name = "t", .elements = 3});
    }
    layout_ = std::make_unique<TensorLayout>(table_);
    result_ = Filled(2);
    sent_ = Filled(0.5f);
    OptimizerOptions sgd;
    sgd.name = "sgd";
    sgd.momentum = 0;
    optimizer_ = *MakeOptimizer(sgd, tensors_);
    course_ = std::make_unique<WorkerCourse>(
        *WorkerCourse::Make({.data = strategy::DataMode::kIndependent,
                             .rank = 0,
                             .batches = {4},
                             .samples = 64,
                             .seed = 1,
                             .iterations = 10}));
    replica_ = std::make_unique<StepReplica>(tensors_, *optimizer_, 0, *course_);
    replica_->SetRate(kRate);
  }

  std::vector<std::byte> Filled(float value) const {
    std::vector<std::byte> memory(layout_->bytes());
    for (int t = 0; t < 2; ++t) {
      for (size_t i = 0; i < 3; ++i) {
        std::memcpy(memory.data() + layout_->Offset(t) + i * sizeof(value), &value, sizeof(value));
      }
    }
    return memory;
  }
  double Apply(const ApplyUpdate& update) {
    return replica_->Apply(update, sync::Brought(*layout_, result_.data(), sent_.data()));
  }
  double Value(size_t tensor) const { return tensors_[tensor][1].item<double>(); }

  TensorTable table_;
  std::vector<at::Tensor> tensors_;
  std::unique_ptr<TensorLayout> layout_;
  std::vector<std::byte> result_, sent_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<WorkerCourse> course_;
  std::unique_ptr<StepReplica> replica_;
};

TEST_F(StepReplicaTest, StepsWithTheMeanOrTheOwnGradientAndAFactorOnTheRate) {
  Apply({.update = Update::kStepAveraged, .first = 0, .last = 1});
  EXPECT_DOUBLE_EQ(Value(0), 8 - kRate * 2);
  EXPECT_DOUBLE_EQ(Value(1), 16 - kRate * 2);
  Apply({.update = Update::kStepLocal, .first = 1, .last = 1, .rate_factor = 0.5});
  EXPECT_DOUBLE_EQ(Value(0), 8 - kRate * 2);
  EXPECT_DOUBLE_EQ(Value(1), 16 - kRate * 2 - 0.5 * kRate * 4);
}

TEST_F(StepReplicaTest, AdoptsAResultOrAddsWhatItChanged) {
  Apply({.update = Update::kAdopt, .first = 0, .last = 0});
  EXPECT_DOUBLE_EQ(Value(0), 2);
  EXPECT_DOUBLE_EQ(Value(1), 16);
  Apply({.update = Update::kAddChange, .first = 1, .last = 1});
  EXPECT_DOUBLE_EQ(Value(1), 16 + 2 - 0.5);
}

TEST_F(StepReplicaTest, MeasuresHowFarItMoved) {
  EXPECT_DOUBLE_EQ(Apply({.update = Update::kAddChange, .last = 1}), 0);  // nobody asked
  EXPECT_NEAR(Apply({.update = Update::kAddChange, .last = 1, .measure = true}), 6 * 1.5 * 1.5,
              1e-5);
}

TEST_F(StepReplicaTest, BatchesAndProgressReachTheCourse) {
  ASSERT_TRUE(replica_->SetBatch(7).ok());
  EXPECT_EQ(course_->batch(), 7);
  EXPECT_FALSE(replica_->SetBatch(65).ok());
  ASSERT_TRUE(replica_->SetProgress({.total_samples = 8, .stop = true}).ok());
  EXPECT_TRUE(course_->Ended(0));
}

}  // namespace
}  // namespace syncopate::train
