#include "tools/plan_schedule.h"

#include <string>

#include "base/parse.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tools/command_line.h"
#include "tools/plan_command_testing.h"
#include "tools/schedule_picture.h"

namespace syncopate::tools {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

PlanArguments ForModel(const std::string& model, const std::string& schedule = "") {
  PlanArguments arguments;
  arguments.schedule.model = model;
  arguments.schedule.schedule = schedule;
  return arguments;
}

TEST(PlanScheduleTest, ComparesAllPlannersOfAModel) {
  const Result result = RunIt(ForModel("vgg-16"));
  EXPECT_EQ(result.exit_code, kDone);
  EXPECT_EQ(result.err, "");
  EXPECT_THAT(result.out, AllOf(HasSubstr("vgg-16: 32 tensors, 138357544 parameters"),
                                HasSubstr("1.4 ms to start up, 1.7 ns a byte, gamma 1, 1.5"),
                                HasSubstr("\nnone "), HasSubstr("\nwfbp "), HasSubstr("\nmg-wfbp "),
                                HasSubstr("\nbucket "), HasSubstr("\nasc-wfbp "),
                                HasSubstr("\nsearch "), HasSubstr("no schedule takes less than ")));
  EXPECT_THAT(result.out, Not(HasSubstr("why:")));
}

TEST(PlanScheduleTest, ExplainListsTransfersAndLeavesOutTheMiddleOfMany) {
  PlanArguments arguments = ForModel("resnet-50", "wfbp,search");
  arguments.explain = true;
  const Result result = RunIt(arguments);
  EXPECT_THAT(result.out, AllOf(HasSubstr("wfbp: each tensor alone"), HasSubstr("... 145 more"),
                                HasSubstr("held up by: the first transfer starts at"),
                                HasSubstr("why: search has the shortest iteration")));
  EXPECT_THAT(result.out, Not(HasSubstr("mg-wfbp")));
}

TEST(PlanScheduleTest, JsonHasTheTimesOfEachTransfer) {
  PlanArguments arguments = ForModel("vgg-16", "all");
  arguments.json = true;
  const Result result = RunIt(arguments);
  const nlohmann::json json = nlohmann::json::parse(result.out, nullptr, false);
  ASSERT_TRUE(json.is_object());
  EXPECT_EQ(json["tensors"], 32);
  EXPECT_EQ(json["best"], "search");
  ASSERT_EQ(json["schedules"].size(), 6u);
  const auto& wfbp = json["schedules"][1];
  EXPECT_EQ(wfbp["schedule"], "wfbp");
  ASSERT_EQ(wfbp["transfers"].size(), 32u);
  EXPECT_EQ(wfbp["transfers"][0]["first"], 31);
  EXPECT_DOUBLE_EQ(wfbp["transfers"][31]["end"].get<double>(),
                   wfbp["iteration_seconds"].get<double>());
}

TEST(PlanScheduleTest, TakesTablesAndCostsFromFiles) {
  const TensorTable table{"mine", {{"w", 1000, DataType::kFloat32, 0.5, 1}}};
  const TemporaryFile tensors(ToJson(table), ".table");
  const TemporaryFile costs(R"({"a": "1s", "b": "1ms"})", ".costs");
  PlanArguments arguments;
  arguments.schedule.table = tensors.path();
  arguments.schedule.costs = costs.path();
  arguments.schedule.schedule = "none";
  arguments.json = true;
  const nlohmann::json json = nlohmann::json::parse(RunIt(arguments).out, nullptr, false);
  EXPECT_DOUBLE_EQ(json["schedules"][0]["iteration_seconds"].get<double>(), 0.5 + 1 + 1 + 4);
  arguments.schedule.scale_bytes = "0.5";
  arguments.schedule.scale_times = "2";
  arguments.schedule.costs = "1s,1e-3,1.5";
  const nlohmann::json scaled = nlohmann::json::parse(RunIt(arguments).out, nullptr, false);
  EXPECT_DOUBLE_EQ(scaled["schedules"][0]["iteration_seconds"].get<double>(), 1 + 2 + 1 + 2);
  EXPECT_EQ(scaled["costs"]["gamma"].size(), 2u);
}

TEST(PlanScheduleTest, ExportsWhatCanBeReadBack) {
  PlanArguments arguments = ForModel("vgg-16", "search");
  arguments.export_form = "text";
  const absl::StatusOr<Schedule> schedule = ParseSchedule(RunIt(arguments).out);
  ASSERT_TRUE(schedule.ok());
  EXPECT_EQ(schedule->tensors(), 32);
  arguments.export_form = "table";
  const absl::StatusOr<TensorTable> table = ParseTensorTable(RunIt(arguments).out);
  ASSERT_TRUE(table.ok());
  EXPECT_EQ(table->elements(), 138'357'544u);
}

TEST(PlanScheduleTest, SaysWhatIsWrong) {
  const auto error = [](PlanArguments arguments) {
    const Result result = RunIt(arguments);
    EXPECT_EQ(result.exit_code, kBadUsage);
    EXPECT_EQ(result.out, "");
    return result.err;
  };
  EXPECT_THAT(error(ForModel("lenet")), HasSubstr("--model: \"lenet\" is not a model"));
  EXPECT_THAT(error(ForModel("vgg-16", "best")), HasSubstr("--schedule: \"best\" is not a"));
  EXPECT_THAT(error(ForModel("", "search")), HasSubstr("--model resnet-152, or --table FILE"));
  PlanArguments arguments = ForModel("vgg-16");
  arguments.schedule.table = "x";
  EXPECT_THAT(error(arguments), HasSubstr("give one of them"));
  arguments = ForModel("vgg-16");
  arguments.schedule.costs = "1ms,fast";
  EXPECT_THAT(error(arguments), HasSubstr("--costs: \"fast\" is not a time"));
  arguments.schedule.costs = "1ms,1ns,2,1.5";
  EXPECT_THAT(error(arguments), HasSubstr("--costs: gamma[2]: 1.5"));
  arguments.schedule.costs = "no-such-file";
  EXPECT_THAT(error(arguments), HasSubstr("no-such-file"));
  arguments = ForModel("vgg-16");
  arguments.schedule.scale_times = "0";
  EXPECT_THAT(error(arguments), HasSubstr("--scale-times: "));
  arguments = ForModel("vgg-16");
  arguments.export_form = "text";
  EXPECT_THAT(error(arguments), HasSubstr("several schedules"));
  arguments.export_form = "msccl";
  EXPECT_THAT(error(arguments), HasSubstr("choose text or table"));
}

TEST(SchedulePictureTest, HasAPanelForEachScheduleAndALaneForEachTransferAtOnce) {
  PlanArguments arguments = ForModel("densenet-201");
  arguments.schedule.costs = "1.4ms,1.7ns,1.5,2";
  const absl::StatusOr<ScheduleReport> report = MakeScheduleReport(arguments.schedule);
  ASSERT_TRUE(report.ok());
  const std::string svg = SchedulesToSvg(*report);
  EXPECT_THAT(svg, AllOf(HasSubstr("densenet-201: 604 tensors"), HasSubstr(">none "),
                         HasSubstr(">wfbp "), HasSubstr(">search "), HasSubstr("network 2"),
                         HasSubstr("backward of features."), HasSubstr("</svg>")));
  EXPECT_THAT(svg, Not(HasSubstr("width='-")));
  EXPECT_LT(svg.size(), 1u << 20);
  EXPECT_EQ(svg, SchedulesToSvg(*report));
}

}  // namespace
}  // namespace syncopate::tools
