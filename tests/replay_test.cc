// `syncopate probe --allreduce` and `syncopate replay` as a user meets them: jobs of a few workers.
#include <unistd.h>

#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "subprocess.h"

namespace syncopate::testing {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

std::string Scratch(const std::string& name) {
  return ::testing::TempDir() + "/syncopate-replay-" + std::to_string(getpid()) + "-" + name;
}

// How far a command is goes to standard error, here often.
Subprocess::Options OftenSaid() { return {.environment = {"SYNCOPATE_PROGRESS=50ms"}}; }

TEST(AllReduceProbeSystemTest, MeasuresPrintsAndSavesCostsThatPlansRead) {
  const std::string file = Scratch("costs.json");
  Subprocess probe(
      {SYNCOPATE_BINARY, "probe", "--allreduce", "-n", "2", "--budget", "1s", "-o", file, "--json"},
      OftenSaid());
  ASSERT_EQ(probe.Wait(), 0) << probe.err();
  EXPECT_THAT(probe.err(), ContainsRegex("syncopate probe: [0-9]+ %, .*measuring all-reduces"));
  const nlohmann::json json = nlohmann::json::parse(probe.out());
  EXPECT_EQ(json["workers"], 2);
  EXPECT_EQ(json["costs"]["gamma"].size(), 4u);
  EXPECT_GE(json["points"].size(), 6u);
  for (const auto& point : json["points"]) {
    const double measured = point["seconds"], fitted = point["fitted"];
    EXPECT_NEAR(point["residual"], measured / fitted - 1, 1e-6);
  }
  Subprocess plan(
      {SYNCOPATE_BINARY, "plan", "--schedule", "search", "--model", "resnet-50", "--costs", file});
  EXPECT_EQ(plan.Wait(), 0) << plan.err();
  unlink(file.c_str());
}

TEST(AllReduceProbeSystemTest, SaysWhatIsWrong) {
  Subprocess alone({SYNCOPATE_BINARY, "probe", "--allreduce", "-n", "1"});
  EXPECT_NE(alone.Wait(), 0);
  EXPECT_THAT(alone.err(), HasSubstr("one worker has nobody to reduce with"));
  Subprocess out({SYNCOPATE_BINARY, "probe", "-n", "2", "-o", "costs.json"});
  EXPECT_EQ(out.Wait(), 2);
  EXPECT_THAT(out.err(), HasSubstr("--allreduce"));
}

TEST(ReplaySystemTest, ComparesAllSchedulesInOneJob) {
  Subprocess replay({SYNCOPATE_BINARY, "replay", "--model", "vgg-16", "-n", "2", "--bytes-scale",
                     "0.001", "--time-scale", "0.02", "--iterations", "4", "--rounds", "2",
                     "--costs-time", "500ms", "--json"},
                    OftenSaid());
  ASSERT_EQ(replay.Wait(), 0) << replay.err();
  EXPECT_THAT(replay.err(), ContainsRegex("syncopate replay: [0-9]+ %, .*vgg-16, "));
  const nlohmann::json json = nlohmann::json::parse(replay.out());
  EXPECT_EQ(json["workers"], 2);
  ASSERT_EQ(json["models"].size(), 1u);
  const nlohmann::json& model = json["models"][0];
  EXPECT_EQ(model["tensors"], 32);
  ASSERT_EQ(model["schedules"].size(), 6u);
  for (const auto& schedule : model["schedules"]) {
    // It cannot be quicker than its computing.
    EXPECT_GE(schedule["measured_ms"].get<double>(), 0.98 * model["compute_ms"].get<double>());
    EXPECT_GE(schedule["predicted_ms"].get<double>(), 0.98 * model["compute_ms"].get<double>());
    EXPECT_EQ(schedule["last_round"]["iterations"], 2);
    // Null where all its iterations are shorter than the kernel counts.
    if (!schedule["cores_busy"].is_null()) {
      EXPECT_GE(schedule["cores_busy"].get<double>(), 0);
      EXPECT_LE(schedule["cores_busy"].get<double>(), 1);
    }
    EXPECT_EQ(schedule["last_round"]["bytes_sent"], 2 * 2 * model["bytes"].get<uint64_t>());
  }
}

TEST(ReplaySystemTest, PlaysTheTableAndTheScheduleOfFiles) {
  const std::string table = Scratch("table.json"), schedule = Scratch("my.schedule");
  std::ofstream(table) << R"({"model": "mine", "tensors": [
      {"name": "a", "elements": 1000, "type": "float32", "forward_seconds": "1ms",
       "backward_seconds": "1ms"},
      {"name": "b", "elements": 1000, "type": "float32", "forward_seconds": "1ms",
       "backward_seconds": "1ms"}]})";
  std::ofstream(schedule) << "syncopate schedule 1\nplanner mine\ntransfer 0-1\nend\n";
  Subprocess replay({SYNCOPATE_BINARY, "replay", "--model", table, "--schedule", schedule, "-n",
                     "2", "--iterations", "2", "--overlap-forward"});
  EXPECT_EQ(replay.Wait(), 0) << replay.err();
  EXPECT_THAT(replay.out(), HasSubstr("mine: 2 tensors"));
  unlink(table.c_str());
  unlink(schedule.c_str());
}

TEST(ReplaySystemTest, WhatIsWrongIsSaidBeforeAJobStarts) {
  Subprocess model({SYNCOPATE_BINARY, "replay", "--model", "alexnet", "-n", "2"});
  EXPECT_EQ(model.Wait(), 2);
  EXPECT_THAT(model.err(), HasSubstr("resnet-152"));
  Subprocess planner(
      {SYNCOPATE_BINARY, "replay", "--model", "vgg-16", "-n", "2", "--schedule", "luck"});
  EXPECT_EQ(planner.Wait(), 2);
  EXPECT_THAT(planner.err(), HasSubstr("asc-wfbp"));
  Subprocess scale(
      {SYNCOPATE_BINARY, "replay", "--model", "vgg-16", "-n", "2", "--bytes-scale", "-1"});
  EXPECT_EQ(scale.Wait(), 2);
  EXPECT_THAT(scale.err(), HasSubstr("--bytes-scale"));
}

}  // namespace
}  // namespace syncopate::testing
