#include "train/options/train_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace syncopate::train {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(TrainOptionsTest, MeasureFirstTravelsAndDoesNotChangeTheCourse) {
  TrainOptions options;
  EXPECT_THAT(ToJson(options), Not(HasSubstr("measure_first")));
  const auto usual = ParseTrainOptions(ToJson(options));
  ASSERT_TRUE(usual.ok()) << usual.status();
  EXPECT_FALSE(usual->measure_first);
  options.measure_first = true;
  const auto parsed = ParseTrainOptions(ToJson(options));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_TRUE(parsed->measure_first);
  EXPECT_EQ(CourseDigest(options, 2), CourseDigest(*usual, 2));
  EXPECT_EQ(CourseDifference(*usual, options), "");
}

TEST(TrainOptionsTest, ThePlaceIsKeptAndDoesNotChangeTheCourse) {
  TrainOptions options;
  EXPECT_THAT(ToJson(options), Not(HasSubstr("place")));
  options.place = {.ranks = 3, .hosts = "a:2,b", .hostfile = "", .agent = "on {host}", .lab = ""};
  EXPECT_THAT(ToJson(options),
              HasSubstr(R"("place":{"ranks":3,"hosts":"a:2,b","agent":"on {host}"})"));
  const auto parsed = ParseTrainOptions(ToJson(options));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->place, options.place);
  EXPECT_EQ(CourseDigest(options, 3), CourseDigest(TrainOptions(), 3));
  EXPECT_EQ(CourseDifference(TrainOptions(), options), "");
  EXPECT_THAT(ParseTrainOptions(R"({"place": {"moon": 1}})").status().message(), HasSubstr("moon"));
  EXPECT_FALSE(ParseTrainOptions(R"({"place": 5})").ok());
}

TEST(TrainOptionsTest, ThePaceIsKeptCheckedAndDoesNotChangeTheCourse) {
  TrainOptions options;
  options.pace = {.pace = {"20ms,800", "1:0s,100"}, .slow = {"1:2"}};
  const auto parsed = ParseTrainOptions(ToJson(options));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->pace, options.pace);
  EXPECT_EQ(CourseDigest(options, 2), CourseDigest(TrainOptions(), 2));
  EXPECT_EQ(CourseDifference(TrainOptions(), options), "");
  EXPECT_TRUE(options.Validate(2).ok()) << options.Validate(2);
  EXPECT_THAT(options.Validate(1).message(), HasSubstr("--pace 1:0s,100")) << "there is no rank 1";
}

TEST(TrainOptionsTest, UnknownKeysAreRefused) {
  EXPECT_THAT(ParseTrainOptions(R"({"measure_last": true})").status().message(),
              HasSubstr("measure_last"));
}

}  // namespace
}  // namespace syncopate::train
