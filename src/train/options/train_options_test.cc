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

// A strategy of each kind, for tests.
void AddKinds() {
  static const bool added = [] {
    for (const std::string name :
         {"in-lockstep-for-options", "loose-for-options", "together-for-options"}) {
      strategy::StrategyEntry entry;
      entry.name = name;
      entry.lockstep = name == "in-lockstep-for-options";
      entry.data = strategy::DataMode::kIndependent;
      entry.ends_together = name == "together-for-options";
      entry.make = [](const strategy::StrategyOptions&)
          -> absl::StatusOr<std::unique_ptr<strategy::Strategy>> {
        return absl::UnimplementedError("only its entry is wanted");
      };
      if (!strategy::AddStrategy(entry).ok()) return false;
    }
    return true;
  }();
  ASSERT_TRUE(added);
}

TEST(TrainOptionsTest, WhereSamplesComeFromIsAChoiceWithoutLockstepOnly) {
  using strategy::DataMode;
  AddKinds();
  TrainOptions options;
  EXPECT_EQ(*DataModeOf(options), DataMode::kInStep);  // as bsp has it
  options.data_mode = "in-step";
  EXPECT_EQ(*DataModeOf(options), DataMode::kInStep);
  options.data_mode = "epochs";
  EXPECT_THAT(options.Validate(2).message(),
              HasSubstr("--data-mode epochs: strategy bsp has in-step"));
  options.strategy = "in-lockstep-for-options";
  EXPECT_FALSE(DataModeOf(options).ok());
  options.strategy = "loose-for-options";
  EXPECT_EQ(*DataModeOf(options), DataMode::kRanges);
  options.data_mode = "independent";
  EXPECT_EQ(*DataModeOf(options), DataMode::kIndependent);
  options.data_mode = "";
  EXPECT_EQ(*DataModeOf(options), DataMode::kIndependent);
  options.data_mode = "in-step";
  EXPECT_THAT(DataModeOf(options).status().message(), HasSubstr("independent, epochs"));
  // A worker that has no samples left would keep others waiting.
  options.strategy = "together-for-options";
  EXPECT_THAT(DataModeOf(options).status().message(), HasSubstr("has independent"));
  const auto parsed = ParseTrainOptions(ToJson(options));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->data_mode, "in-step");
}

TEST(TrainOptionsTest, UnknownKeysAreRefused) {
  EXPECT_THAT(ParseTrainOptions(R"({"measure_last": true})").status().message(),
              HasSubstr("measure_last"));
}

}  // namespace
}  // namespace syncopate::train
