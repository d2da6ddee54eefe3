#include "tools/bench/train_contest.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace syncopate::tools::bench {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

TrainRun MakeRun(double iteration, double compute, double exposed,
                 std::vector<std::pair<int64_t, double>> losses = {}) {
  observe::Summary summary;
  summary.workers = 4;
  summary.iteration_ms_p50 = iteration;
  summary.compute_ms_p50 = compute;
  summary.exposed_comm_ms_p50 = exposed;
  return {.summary = summary, .losses = std::move(losses)};
}

TEST(MakeTrainRunTest, TakesTheLossesOfTraining) {
  const auto run = MakeTrainRun(
      MakeRun(3, 2, 1).summary,
      observe::ReadMetrics(
          "{\"kind\":\"train\",\"iteration\":5,\"seconds\":1,\"loss\":2.5}\n"
          "{\"kind\":\"evaluate\",\"iteration\":5,\"seconds\":1,\"loss\":9,\"accuracy\":0.1}\n"
          "{\"kind\":\"event\",\"iteration\":6,\"seconds\":1,\"text\":\"planned again\"}\n"
          "{\"kind\":\"train\",\"iteration\":10,\"seconds\":2,\"loss\":2.25}\n"));
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_THAT(run->losses, ElementsAre(Pair(5, 2.5), Pair(10, 2.25)));
}

TEST(MakeTrainRunTest, RefusesARunWithoutTimes) {
  observe::Summary summary = MakeRun(3, 2, 1).summary;
  summary.exposed_comm_ms_p50.reset();
  EXPECT_FALSE(MakeTrainRun(summary, {}).ok());
}

TEST(TrainRowsTest, ComparesRoundByRoundWithTheFirst) {
  const std::vector<TrainRow> rows =
      TrainRows({{"search", {MakeRun(100, 80, 20), MakeRun(200, 170, 30), MakeRun(110, 80, 25)}},
                 {"ddp", {MakeRun(150, 90, 60), MakeRun(220, 170, 50), MakeRun(165, 90, 75)}}});
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].contestant, "search");
  EXPECT_DOUBLE_EQ(rows[0].iteration_ms, 110);
  EXPECT_DOUBLE_EQ(rows[0].exposed_ms, 25);
  EXPECT_FALSE(rows[0].ratio.has_value());
  EXPECT_EQ(rows[1].rounds, 3);
  EXPECT_DOUBLE_EQ(rows[1].compute_ms, 90);
  EXPECT_DOUBLE_EQ(rows[1].ratio->p50, 1.5);
  EXPECT_DOUBLE_EQ(rows[1].ratio->min, 1.1);
  EXPECT_DOUBLE_EQ(rows[1].ratio->max, 1.5);
  EXPECT_DOUBLE_EQ(rows[1].exposed_share->p50, 1.0 / 3);
  EXPECT_DOUBLE_EQ(rows[1].exposed_share->max, 0.6);
}

TEST(TrainRowsTest, ATimeOfZeroIsNoError) {
  const std::vector<TrainRow> rows =
      TrainRows({{"search", {MakeRun(100, 80, 20)}}, {"none", {MakeRun(80, 80, 0)}}});
  EXPECT_TRUE(std::isinf(rows[1].exposed_share->p50));
  EXPECT_THAT(TrainTable(rows), HasSubstr("inf"));
  const std::vector<TrainRow> both =
      TrainRows({{"search", {MakeRun(80, 80, 0)}}, {"none", {MakeRun(80, 80, 0)}}});
  EXPECT_DOUBLE_EQ(both[1].exposed_share->p50, 1);
}

TEST(TrainRowsTest, ShowsHowFarLossesAreApart) {
  const std::vector<TrainRow> rows =
      TrainRows({{"search", {MakeRun(1, 1, 0, {{5, 2.0}, {10, 1.0}})}},
                 {"ddp", {MakeRun(1, 1, 0, {{5, 2.1}, {10, 1.01}, {15, 7}})}}});
  EXPECT_NEAR(rows[1].loss_difference, 0.05, 1e-12);
  EXPECT_DOUBLE_EQ(rows[0].loss, 1.0);
}

TEST(TrainJsonLineTest, IsOneObjectALine) {
  const std::vector<TrainRow> rows =
      TrainRows({{"search", {MakeRun(100, 80, 20)}}, {"ddp", {MakeRun(150, 90, 40)}}});
  EXPECT_THAT(TrainJsonLine(rows[0]), Not(HasSubstr("\"ratio\"")));
  const auto json = nlohmann::json::parse(TrainJsonLine(rows[1]));
  EXPECT_EQ(json.at("contestant"), "ddp");
  EXPECT_DOUBLE_EQ(json.at("ratio").get<double>(), 1.5);
  EXPECT_DOUBLE_EQ(json.at("exposed_share_max").get<double>(), 0.5);
  EXPECT_THAT(TrainTable(rows), AllOf(HasSubstr("search"), HasSubstr("1.50 (1.50 to 1.50)")));
}

}  // namespace
}  // namespace syncopate::tools::bench
