#include "tools/simulate_command.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/parse.h"
#include "base/temporary_folder_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/topology_makers.h"
#include "nlohmann/json.hpp"
#include "schedule/timeline.h"
#include "strategy/options_json.h"
#include "strategy/record.h"
#include "strategy/registry.h"
#include "tools/command_line.h"

namespace syncopate::tools {
namespace {

using ::testing::HasSubstr;

SimulateArguments Small() {
  SimulateArguments arguments;
  arguments.model.model = "resnet-50";
  arguments.model.schedule = "wfbp";
  arguments.model.costs = "1ms,1ns";
  arguments.workers = "3";
  arguments.iterations = 4;
  return arguments;
}

class SimulateCommandTest : public ::testing::Test {
 protected:
  int Run(const SimulateArguments& arguments) {
    std::ostringstream out;
    const int code = RunSimulate(arguments, out);
    out_ = out.str();
    return code;
  }
  const TemporaryFolder folder_;
  std::string out_;
};

// Equal workers take what the timeline model predicts.
TEST_F(SimulateCommandTest, TakesTheTimeOfTheTimelineModel) {
  SimulateArguments arguments = Small();
  arguments.json = true;
  ASSERT_EQ(Run(arguments), kDone);
  const auto json = nlohmann::json::parse(out_);
  EXPECT_EQ(json["workers"], 3);
  arguments.model.overlap_forward = true;
  const auto report = MakeScheduleReport(arguments.model);
  ASSERT_TRUE(report.ok()) << report.status();
  const double predicted = report->schedules.front().timeline.iteration_seconds;
  EXPECT_NEAR(json["iteration_seconds"]["p50"].get<double>(), predicted, 1e-6);
  EXPECT_GT(json["iteration_seconds"]["p50"], json["compute_seconds"]);
  arguments.json = false;
  ASSERT_EQ(Run(arguments), kDone);
  EXPECT_THAT(out_, HasSubstr("bsp of resnet-50 on 3 workers, 4 iterations"));
}

// What the file says was decided is what fresh strategies decide that are told the same.
TEST_F(SimulateCommandTest, TheLogPlaysAgain) {
  SimulateArguments arguments = Small();
  arguments.jitter = "0.5";
  arguments.log = absl::StrCat(folder_.path(), "/log");
  ASSERT_EQ(Run(arguments), kDone);
  const auto text = ReadFile(arguments.log, uint64_t{1} << 30);
  ASSERT_TRUE(text.ok()) << text.status();
  std::map<int, std::unique_ptr<strategy::Strategy>> machines;
  std::map<std::string, int> kinds;
  for (const absl::string_view line : absl::StrSplit(*text, '\n', absl::SkipEmpty())) {
    const auto json = nlohmann::json::parse(line);
    const std::string kind = json["kind"];
    const int rank = json["rank"];
    ++kinds[kind];
    if (kind == "job") {
      const auto options = strategy::ParseStrategyOptions(json["options"].dump());
      ASSERT_TRUE(options.ok()) << options.status();
      EXPECT_EQ(options->rank, rank);
      auto machine = strategy::MakeStrategy(json["strategy"].get<std::string>(), *options);
      ASSERT_TRUE(machine.ok()) << machine.status();
      machines[rank] = *std::move(machine);
    }
    if (kind != "decision") continue;
    const auto decision = strategy::ParseDecision(line);
    ASSERT_TRUE(decision.ok()) << decision.status();
    std::vector<strategy::Command> commands;
    machines.at(rank)->Step(decision->now, decision->event, commands);
    ASSERT_TRUE(commands == decision->commands) << line;
  }
  const auto report = MakeScheduleReport(arguments.model);
  ASSERT_TRUE(report.ok());
  const int transfers = static_cast<int>(report->schedules.front().schedule.transfers.size());
  EXPECT_EQ(kinds["job"], 3);
  EXPECT_EQ(kinds["transfer"], 3 * 4 * transfers);
  EXPECT_GE(kinds["update"], 3 * 4);
}

TEST_F(SimulateCommandTest, ANetworkSaysWhatTransfersCost) {
  const auto seconds = [&](double bandwidth) {
    const std::string path = absl::StrCat(folder_.path(), "/net.json");
    EXPECT_TRUE(WriteFile(path, ToJson(StarTopology(4, bandwidth, 50e-6))).ok());
    SimulateArguments arguments = Small();
    arguments.model.costs = "";
    arguments.topology = path;
    arguments.workers = "";  // those of the network
    arguments.json = true;
    EXPECT_EQ(Run(arguments), kDone);
    const auto json = nlohmann::json::parse(out_);
    EXPECT_EQ(json["workers"], 4);
    return json["iteration_seconds"]["p50"].get<double>();
  };
  EXPECT_GT(seconds(1e8), 2 * seconds(1e10));
}

// Every byte of a ring or a tree crosses links, and the figures say which and how many.
TEST_F(SimulateCommandTest, SaysWhatTheNetworkCarried) {
  const std::string path = absl::StrCat(folder_.path(), "/net.json");
  ASSERT_TRUE(WriteFile(path, ToJson(TwoRackTopology(2, 1e9, 1e8, 50e-6))).ok());
  SimulateArguments arguments = Small();
  arguments.model.costs = "";
  arguments.topology = path;
  arguments.workers = "4";
  arguments.json = true;
  ASSERT_EQ(Run(arguments), kDone);
  const auto json = nlohmann::json::parse(out_);
  EXPECT_EQ(json["iterations_min"], 4);
  EXPECT_EQ(json["iterations_mean"], 4);
  EXPECT_EQ(json["iterations_max"], 4);
  EXPECT_GT(json["waiting_share"], 0.1);
  EXPECT_LT(json["waiting_share"], 1);
  const auto report = MakeScheduleReport(Small().model);
  ASSERT_TRUE(report.ok());
  const double bytes = static_cast<double>(report->table.bytes()) * 4;
  double most = 0;
  for (const auto& [link, crossed] : json["bytes_by_link"].items()) {
    most = std::max(most, crossed.get<double>());
  }
  EXPECT_GE(most, bytes * 0.99);  // each rack needs the other's half at least
  EXPECT_LE(most, bytes * 4);
  ASSERT_EQ(Run(arguments), kDone);
  EXPECT_EQ(nlohmann::json::parse(out_)["digest"], json["digest"]);
  arguments.seed = 1;
  ASSERT_EQ(Run(arguments), kDone);
  EXPECT_NE(nlohmann::json::parse(out_)["digest"], json["digest"]);
  arguments.json = false;
  ASSERT_EQ(Run(arguments), kDone);
  EXPECT_THAT(out_, HasSubstr("busiest links"));
}

TEST_F(SimulateCommandTest, SeveralCountsMakeATable) {
  SimulateArguments arguments = Small();
  arguments.workers = "2,4,8";
  ASSERT_EQ(Run(arguments), kDone);
  EXPECT_THAT(out_, HasSubstr("samples/s"));
  arguments.json = true;
  ASSERT_EQ(Run(arguments), kDone);
  const auto json = nlohmann::json::parse(out_);
  ASSERT_EQ(json.size(), 3u);
  EXPECT_EQ(json[2]["workers"], 8);
  EXPECT_NEAR(json[2]["samples_per_second"].get<double>(),
              4 * json[0]["samples_per_second"].get<double>(), 1);  // by costs all are alike
}

// A slow worker holds up the others, and the picture shows whom.
TEST_F(SimulateCommandTest, DrawsWhoWaits) {
  SimulateArguments arguments = Small();
  arguments.model.costs = "1e-6,1e-12";  // so that they wait for nothing else
  arguments.pace.slow = {"1:2"};
  arguments.json = true;
  arguments.svg = absl::StrCat(folder_.path(), "/run.svg");
  ASSERT_EQ(Run(arguments), kDone);
  const auto slow = nlohmann::json::parse(out_);
  arguments.pace = {};
  ASSERT_EQ(Run(arguments), kDone);
  const auto even = nlohmann::json::parse(out_);
  EXPECT_GT(slow["waiting_share"], 1.5 * even["waiting_share"].get<double>());
  EXPECT_GT(slow["seconds"], 1.5 * even["seconds"].get<double>());
  const auto text = ReadFile(arguments.svg, uint64_t{1} << 24);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, HasSubstr("worker 2"));
  EXPECT_THAT(*text, HasSubstr("waits for"));
}

TEST_F(SimulateCommandTest, RefusesWhatItCannotDo) {
  const auto refuses = [&](const std::function<void(SimulateArguments&)>& change,
                           const std::string& text) {
    SimulateArguments arguments = Small();
    change(arguments);
    testing::internal::CaptureStderr();
    EXPECT_EQ(Run(arguments), kBadUsage) << text;
    EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr(text));
    EXPECT_EQ(out_, "");
  };
  refuses([](auto& a) { a.strategy = "none"; }, "there is no strategy \"none\"");
  refuses([](auto& a) { a.workers = ""; }, "say how many workers");
  refuses([](auto& a) { a.workers = "3,none"; }, "--workers");
  refuses([](auto& a) { a.workers = "3,0"; }, "--workers");
  refuses([](auto& a) { a.model.model = ""; }, "say for which tensors");
  refuses([](auto& a) { a.model.model = "resnet-5"; }, "--model");
  refuses([](auto& a) { a.model.schedule = "nothing"; }, "--schedule");
  refuses([](auto& a) { a.jitter = "much"; }, "--jitter");
  refuses(
      [](auto& a) {
        a.topology = "/no/such/file";
        a.model.costs = "";
      },
      "/no/such/file");
  refuses([](auto& a) { a.topology = "/no/such/file"; }, "all say what transfers cost");
  refuses([](auto& a) { a.pace.slow = {"3:1"}; }, "--slow 3:1");
  refuses(
      [](auto& a) {
        a.model.costs = "";
        a.lab = "/no/such/lab.toml";
      },
      "/no/such/lab.toml");
  refuses([&](auto& a) { a.workers = "2,3", a.svg = folder_.path() + "/svg"; }, "one run");
  refuses([](auto& a) { a.log = "/no/such/folder/log"; }, "--log");
}

}  // namespace
}  // namespace syncopate::tools
