#include "tools/train_replay.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace syncopate::tools {
namespace {

using ::testing::HasSubstr;

ReplayedSchedule Row(const std::string& name, double predicted, std::vector<double> rounds) {
  ReplayedSchedule row;
  row.name = name;
  row.predicted_seconds = predicted;
  row.measured_seconds = rounds[rounds.size() / 2];
  row.rounds = std::move(rounds);
  if (name == "search") row.cores_busy = 0.625;
  return row;
}

ReplayedModel Model() {
  ReplayedModel model;
  model.table = {.model = "m",
                 .tensors = {{.name = "t",
                              .elements = 1024,
                              .type = DataType::kFloat32,
                              .forward_seconds = 0.1,
                              .backward_seconds = 0.2}}};
  model.costs.fit.costs = {.a = 1e-3, .b = 1e-8, .gamma = {1, 1.5}, .source = "measured"};
  model.schedules = {Row("wfbp", 0.9, {0.8, 1.0, 1.2}), Row("search", 0.5, {0.5, 0.5, 0.4})};
  return model;
}

TEST(ReplayReportTest, SpeedUpsAreOfTheSameRound) {
  const ReplayedModel model = Model();
  const SpeedUp speed_up = SpeedUpOf(model.schedules[1], model.schedules[0]);
  EXPECT_DOUBLE_EQ(speed_up.p50, 2);
  EXPECT_DOUBLE_EQ(speed_up.min, 1.6);
  EXPECT_DOUBLE_EQ(speed_up.max, 3);
}

TEST(ReplayReportTest, TheTableHasPredictedBesideMeasured) {
  const std::string text = ToTable(Model());
  EXPECT_THAT(text, HasSubstr("m: 1 tensor, 4 KiB, computing 300 ms"));
  EXPECT_THAT(text, HasSubstr("900.0"));
  EXPECT_THAT(text, HasSubstr("1000.0"));
  EXPECT_THAT(text, HasSubstr("+11.1 %"));
  EXPECT_THAT(text, HasSubstr("2.00 (1.60 to 3.00)"));
  EXPECT_THAT(text, HasSubstr("cores busy"));
  EXPECT_THAT(text, HasSubstr(" 62 %   1.00"));
  EXPECT_THAT(text, HasSubstr(" -   2.00"));  // not known
}

TEST(ReplayReportTest, APredictionThatIsRightIsNotOffByMinusZero) {
  ReplayedModel model = Model();
  model.schedules[1].predicted_seconds = 0.5 * (1 + 1e-6);
  EXPECT_THAT(ToTable(model), HasSubstr(" +0.0 % "));
}

TEST(ReplayReportTest, TheJsonHasTheSame) {
  const auto json = nlohmann::json::parse(ToJson({Model()}, 8));
  EXPECT_EQ(json["workers"], 8);
  const auto& row = json["models"][0]["schedules"][0];
  EXPECT_EQ(row["schedule"], "wfbp");
  EXPECT_DOUBLE_EQ(row["predicted_over_search"], 1.8);
  EXPECT_DOUBLE_EQ(row["measured_over_search"]["max"], 3);
  EXPECT_TRUE(row["cores_busy"].is_null());
  EXPECT_EQ(json["models"][0]["schedules"][1]["cores_busy"], 0.625);
  EXPECT_EQ(json["models"][0]["costs"]["costs"]["gamma"].size(), 2u);
}

}  // namespace
}  // namespace syncopate::tools
