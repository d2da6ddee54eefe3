#include "tools/train_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace syncopate::tools {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

observe::Summary Ended(int64_t iterations, std::optional<bool> reached, double accuracy) {
  observe::Summary summary;
  summary.iterations = iterations;
  summary.reached = reached;
  summary.accuracy = accuracy;
  summary.loss = 1 - accuracy;
  return summary;
}

TEST(TrainRunTest, NothingIsLeftOfAllIterations) {
  train::TrainOptions before;
  before.iterations = 400;
  train::TrainOptions now = before;
  EXPECT_THAT(WhyNothingIsLeft(Ended(400, {}, 0.9), before, now), HasSubstr("all 400 iterations"));
  now.iterations = 300;
  EXPECT_THAT(WhyNothingIsLeft(Ended(400, {}, 0.9), before, now), HasSubstr("all 400 iterations"));
  now.iterations = 401;
  EXPECT_THAT(WhyNothingIsLeft(Ended(400, {}, 0.9), before, now), IsEmpty());
}

TEST(TrainRunTest, EpochsAreOnlyKnownToBeDoneIfTheyAreTheSame) {
  train::TrainOptions before;
  before.epochs = 2;
  train::TrainOptions now = before;
  EXPECT_THAT(WhyNothingIsLeft(Ended(938, {}, 0.9), before, now), HasSubstr("all 938 iterations"));
  now.epochs = 3;
  EXPECT_THAT(WhyNothingIsLeft(Ended(938, {}, 0.9), before, now), IsEmpty());
}

TEST(TrainRunTest, ATargetMayEndARunEarlyAndAHigherOneGoesOn) {
  train::TrainOptions before;
  before.iterations = 400;
  before.target_accuracy = 0.9;
  train::TrainOptions now = before;
  const observe::Summary ended = Ended(235, true, 0.92);
  EXPECT_THAT(WhyNothingIsLeft(ended, before, now),
              HasSubstr("target was reached at iteration 235"));
  now.target_accuracy = 0.95;
  EXPECT_THAT(WhyNothingIsLeft(ended, before, now), IsEmpty());
  now.target_accuracy.reset();
  EXPECT_THAT(WhyNothingIsLeft(ended, before, now), IsEmpty());
}

TEST(TrainRunTest, AMissedTargetIsNamed) {
  train::TrainOptions before;
  before.iterations = 400;
  before.target_accuracy = 0.95;
  before.target_loss = 0.01;
  EXPECT_THAT(WhyNothingIsLeft(Ended(400, false, 0.92), before, before),
              AllOf(HasSubstr("all 400 iterations"), HasSubstr("accuracy 92.00 % (target 95.00 %)"),
                    HasSubstr("loss 0.0800 (target 0.01)")));
}

}  // namespace
}  // namespace syncopate::tools
