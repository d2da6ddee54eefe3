#include "train/options/learning_rate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace syncopate::train {
namespace {

using ::testing::HasSubstr;

TEST(LearningRateTest, WarmupRisesInEqualSteps) {
  LearningRate rate;
  rate.base = 0.4;
  rate.warmup = 4;
  EXPECT_DOUBLE_EQ(rate.RateAt(0), 0.1);
  EXPECT_DOUBLE_EQ(rate.RateAt(1), 0.2);
  EXPECT_DOUBLE_EQ(rate.RateAt(3), 0.4);
  EXPECT_DOUBLE_EQ(rate.RateAt(1000), 0.4);
}

TEST(LearningRateTest, StepsMultiply) {
  LearningRate rate;
  rate.base = 1;
  ASSERT_TRUE(ParseShape("step:10,20x0.5", rate).ok());
  ASSERT_TRUE(rate.Validate().ok());
  EXPECT_DOUBLE_EQ(rate.RateAt(9), 1);
  EXPECT_DOUBLE_EQ(rate.RateAt(10), 0.5);
  EXPECT_DOUBLE_EQ(rate.RateAt(20), 0.25);
  EXPECT_EQ(rate.ShapeText(), "step:10,20x0.5");
}

TEST(LearningRateTest, CosineFallsToZero) {
  LearningRate rate;
  rate.base = 2;
  rate.warmup = 100;
  rate.iterations = 300;
  ASSERT_TRUE(ParseShape("cosine", rate).ok());
  ASSERT_TRUE(rate.Validate().ok());
  EXPECT_DOUBLE_EQ(rate.RateAt(100), 2);
  EXPECT_NEAR(rate.RateAt(200), 1, 1e-12);
  EXPECT_NEAR(rate.RateAt(300), 0, 1e-12);
  EXPECT_NEAR(rate.RateAt(400), 0, 1e-12);
}

TEST(LearningRateTest, RefusesWhatIsNoSchedule) {
  LearningRate rate;
  for (const char* text : {"", "stairs", "step:", "step:0", "step:1,x", "step:5x2", "step:5x",
                           "step:5x0.1x2", "cosine:3"}) {
    EXPECT_FALSE(ParseShape(text, rate).ok()) << text;
  }
  EXPECT_THAT(ParseShape("stairs", rate).message(), HasSubstr("stairs"));
  EXPECT_EQ(rate.shape, LearningRate::Shape::kConstant);
  rate.base = 0;
  EXPECT_FALSE(rate.Validate().ok());
  rate.base = 1;
  rate.shape = LearningRate::Shape::kCosine;
  rate.iterations = 5;
  rate.warmup = 5;
  EXPECT_FALSE(rate.Validate().ok());
  rate.shape = LearningRate::Shape::kStep;
  rate.steps = {20, 10};
  EXPECT_FALSE(rate.Validate().ok());
}

}  // namespace
}  // namespace syncopate::train
