#include "tools/plan_command.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/parse.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/program.h"
#include "model/topology_makers.h"
#include "nlohmann/json.hpp"
#include "tools/command_line.h"
#include "tools/plan_command_testing.h"

namespace syncopate::tools {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(PlanCommandTest, SummaryOfTheChosenProgram) {
  const Result result = RunIt(OnHost(4, "1M"));
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "");
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("all-reduce of 1 MiB float32 among 4 workers\n"),
                    HasSubstr("algorithm   direct\n"), HasSubstr("rounds      2\n"),
                    HasSubstr("messages    24\n"),
                    HasSubstr("bytes sent  1.5 MiB by the worker that sends most, 6 MiB "
                              "in all\n"),
                    HasSubstr("same bits   yes"), HasSubstr("predicted   ")));
  EXPECT_THAT(result.out, Not(HasSubstr("why:")));
}

TEST(PlanCommandTest, SizeDecidesOnOneHost) {
  EXPECT_THAT(RunIt(OnHost(4, "4K")).out, HasSubstr("algorithm   one-shot\n"));
  EXPECT_THAT(RunIt(OnHost(4, "64K")).out, HasSubstr("algorithm   direct\n"));
}

TEST(PlanCommandTest, ExplainShowsTheCandidatesAndWhy) {
  PlanArguments arguments = OnHost(4, "1M");
  arguments.explain = true;
  const Result result = RunIt(arguments);
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("candidate"), HasSubstr("\nring, "), HasSubstr("\nhalving-doubling "),
                    HasSubstr("hierarchical"), HasSubstr("skipped: the topology names"),
                    HasSubstr("\nwhy: direct is predicted to take "),
                    HasSubstr("2 meetings of all workers, 6 us each\n"),
                    HasSubstr("8 MiB read and written at 100 GB/s\n"),
                    // Its steps are not what runs.
                    Not(HasSubstr("busiest parts")), Not(HasSubstr("critical chain"))));
}

// The times that a user adds up are those of the prediction.
TEST(PlanCommandTest, TheCriticalChainLeadsToThePrediction) {
  PlanArguments arguments = OnHost(4, "1M");
  arguments.explain = true;
  arguments.algorithm = "ring";
  const Result result = RunIt(arguments);
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, AllOf(HasSubstr("busiest parts"), HasSubstr("capacity memory"),
                                HasSubstr("critical chain"), HasSubstr("  the steps\n"),
                                HasSubstr("2 meetings of all workers, before and after\n"),
                                HasSubstr("copies of the data before and after")));
  arguments.json = true;
  const nlohmann::json json = nlohmann::json::parse(RunIt(arguments).out);
  const double steps_us = json["parts"]["steps_us"];
  EXPECT_NEAR(json["critical_chain"].back()["end_us"], steps_us, 1e-6);
  EXPECT_NEAR(json["predicted_us"],
              steps_us + json["parts"]["waiting_us"].get<double>() +
                  json["parts"]["memory_us"].get<double>(),
              1e-6);
}

MeasuredHost Measured() {
  MeasuredHost host;
  host.machine = "a machine";
  host.date = "2026-03-14";
  host.costs.memory_bandwidth = 20e9;
  host.costs.cached_bandwidth = 400e9;
  host.costs.cache_bytes = 16 << 20;
  host.costs.handover_oversubscribed = 2e-6;
  return host;
}

TEST(PlanCommandTest, PredictionsSayWhatTheyAssume) {
  PlanArguments arguments = OnHost(4, "1M");
  EXPECT_THAT(RunIt(arguments).out,
              AllOf(HasSubstr("predicted   95.89 us"),
                    HasSubstr("assumes     36 GB/s of memory, 100 GB/s within 24 MiB of cache, "
                              "6 us a meeting of 4 workers on 2 cores; assumed: run syncopate "
                              "doctor to measure\n")));
  arguments.measured = Measured();
  // 2 meetings of 4 us, and 8 MiB at 400 GB/s.
  EXPECT_THAT(RunIt(arguments).out,
              AllOf(HasSubstr("predicted   28.97 us"), HasSubstr("measured: one host"),
                    HasSubstr("assumes     20 GB/s of memory, 400 GB/s within 16 MiB of cache, "
                              "4 us a meeting of 4 workers on 2 cores; measured by syncopate "
                              "doctor on 2026-03-14\n")));
  arguments.json = true;
  EXPECT_EQ(nlohmann::json::parse(RunIt(arguments).out)["assumes"]["measured"], "2026-03-14");
  arguments.json = false;
  // Of other machines nothing was measured.
  arguments.cores = 8;
  EXPECT_THAT(RunIt(arguments).out,
              HasSubstr("workers on 8 cores; assumed: run syncopate doctor to measure, which "
                        "was done for 2 cores only\n"));
}

// A job's workers must choose alike, so they do not choose by what one of them measured.
TEST(PlanCommandTest, WhatWasMeasuredDoesNotChangeTheChoice) {
  PlanArguments arguments = OnHost(4, "64K");
  arguments.explain = true;
  EXPECT_THAT(RunIt(arguments).out, HasSubstr("algorithm   direct\n"));
  arguments.measured = Measured();
  arguments.measured->costs.handover_oversubscribed = 100e-6;  // one-shot, which meets once, wins
  EXPECT_THAT(RunIt(arguments).out,
              AllOf(HasSubstr("algorithm   direct\n"), HasSubstr("\none-shot "),
                    HasSubstr("one-shot would take"), HasSubstr("jobs choose by fixed costs")));
}

TEST(PlanCommandTest, JsonHasItAll) {
  PlanArguments arguments = OnHost(4, "1M");
  arguments.json = true;
  const Result result = RunIt(arguments);
  EXPECT_EQ(result.exit_code, 0);
  const nlohmann::json json = nlohmann::json::parse(result.out, nullptr, false);
  ASSERT_TRUE(json.is_object());
  EXPECT_EQ(json["algorithm"], "direct");
  EXPECT_EQ(json["bytes"], 1 << 20);
  EXPECT_EQ(json["workers"], 4);
  EXPECT_EQ(json["active"].size(), 4u);
  EXPECT_EQ(json["rounds"], 2);
  EXPECT_GT(json["predicted_us"].get<double>(), 0);
  EXPECT_GT(json["candidates"].size(), 8u);
  EXPECT_EQ(json["candidates"][0]["algorithm"], "direct");
  EXPECT_TRUE(json["critical_chain"].empty());  // it runs as a whole, not step by step
  EXPECT_TRUE(json["assumes"]["measured"].is_null());
  EXPECT_FALSE(json["why"].get<std::string>().empty());
}

TEST(PlanCommandTest, ReadsATopologyAndCountsItsDevices) {
  const TemporaryFile file(ToJson(TwoRackTopology(3, 1e9, 1e8, 1e-5)));
  PlanArguments arguments;
  arguments.topology = file.path();
  arguments.bytes = "6M";
  const Result result = RunIt(arguments);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("among 6 workers"), HasSubstr("declared: two racks, version 0")));
  arguments.workers = 7;
  const Result too_many = RunIt(arguments);
  EXPECT_EQ(too_many.exit_code, 2);
  EXPECT_THAT(too_many.err, HasSubstr("6 devices, too few for 7 workers"));
}

TEST(PlanCommandTest, ActiveWorkersAndRoot) {
  PlanArguments arguments = OnHost(8, "64K");
  arguments.collective = "broadcast";
  arguments.active = "0-3,6";
  arguments.root = 6;
  const Result result = RunIt(arguments);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("among 5 workers (0-3,6 of 8), root 6\n"));
}

TEST(PlanCommandTest, EveryCollectivePlans) {
  for (const Collective collective : kCollectives) {
    PlanArguments arguments = OnHost(3, "12K");
    arguments.collective = std::string(Name(collective));
    const Result result = RunIt(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr(std::string("request     ") + arguments.collective));
  }
}

TEST(PlanCommandTest, ExportsTheProgram) {
  PlanArguments arguments = OnHost(4, "1M");
  arguments.algorithm = "ring";
  arguments.pieces = 2;
  arguments.export_form = "text";
  const Result text = RunIt(arguments);
  EXPECT_EQ(text.exit_code, 0) << text.err;
  const absl::StatusOr<Program> program = ParseProgram(text.out);
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(program->algorithm, "ring");
  EXPECT_EQ(program->workers, 4);

  arguments.export_form = "msccl";
  const Result xml = RunIt(arguments);
  EXPECT_EQ(xml.exit_code, 0) << xml.err;
  EXPECT_THAT(xml.out, StartsWith("<algo"));

  const TemporaryFile file("");
  arguments.export_form = "";
  arguments.output = file.path();
  const Result to_file = RunIt(arguments);
  EXPECT_EQ(to_file.exit_code, 0) << to_file.err;
  EXPECT_THAT(to_file.out, HasSubstr("algorithm   ring, 2 pieces\n"));
  EXPECT_EQ(*ReadFile(file.path(), 1 << 20), text.out);
}

// An empty list is not the same as none.
TEST(PlanCommandTest, EmptyListOfActiveWorkers) {
  CLI::App app("test", "syncopate");
  int exit_code = -1;
  AddPlanCommand(app, exit_code);
  const char* words[] = {"syncopate", "plan", "-n", "4", "--active", ""};
  testing::internal::CaptureStderr();
  RunCommandLine(app, static_cast<int>(std::size(words)), words, exit_code);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("--active: no worker is active"));
  EXPECT_EQ(exit_code, 2);
}

// What MSCCL cannot say is a failure, not bad usage.
TEST(PlanCommandTest, ExportThatCannotBe) {
  PlanArguments arguments = OnHost(4, "1M");
  arguments.collective = "broadcast";
  arguments.export_form = "msccl";
  const Result result = RunIt(arguments);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, StartsWith("syncopate plan: "));
}

struct BadInput {
  const char* name;
  void (*change)(PlanArguments&);
  const char* message;
};

class PlanCommandBadInputTest : public ::testing::TestWithParam<BadInput> {};

TEST_P(PlanCommandBadInputTest, OneLineAndExitCode2) {
  PlanArguments arguments = OnHost(4, "1M");
  GetParam().change(arguments);
  const Result result = RunIt(arguments);
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, StartsWith("syncopate plan: "));
  EXPECT_THAT(result.err, HasSubstr(GetParam().message));
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1);
}

const BadInput kBadInputs[] = {
    {"NoWorkers", [](PlanArguments& a) { a.workers = 0; }, "say how many workers (-n N)"},
    {"NegativeWorkers", [](PlanArguments& a) { a.workers = -3; }, "-n: -3 is not a number of"},
    {"TooManyWorkers", [](PlanArguments& a) { a.workers = 4097; }, "-n: 4097 is not a number of"},
    {"Bytes", [](PlanArguments& a) { a.bytes = "4Q"; }, "--bytes: \"4Q\" is not a size"},
    {"BytesOfHalfAnElement", [](PlanArguments& a) { a.bytes = "1022"; },
     "--bytes: 1022 is not a multiple of the 4 bytes of a float32"},
    {"Type", [](PlanArguments& a) { a.type = "float8"; }, "--type: \"float8\" is not a type"},
    {"Collective", [](PlanArguments& a) { a.collective = "all-reverse"; }, "all-reverse"},
    {"NobodyActive", [](PlanArguments& a) { a.active = ""; }, "--active: no worker is active"},
    {"NegativeActive", [](PlanArguments& a) { a.active = "-1"; }, "--active: \"-1\" is not a list"},
    {"ActiveBeyondTheLast", [](PlanArguments& a) { a.active = "2,4"; },
     "--active: \"2,4\" is not a list of ranks from 0 to 3"},
    {"Active", [](PlanArguments& a) { a.active = "0-9"; }, "--active: \"0-9\" is not a list"},
    {"Root",
     [](PlanArguments& a) {
       a.collective = "reduce";
       a.active = "0-2";
       a.root = 3;
     },
     "--root: worker 3 is not one of the active ones, 0-2"},
    {"RootWithoutUse", [](PlanArguments& a) { a.root = 0; }, "--root: all-reduce has no root"},
    {"TargetWithoutUse", [](PlanArguments& a) { a.target = 0; }, "--target: all-reduce has none"},
    {"Algorithm", [](PlanArguments& a) { a.algorithm = "star"; },
     "\"star\" is not an algorithm for all-reduce; choose ring, direct"},
    {"Trees",
     [](PlanArguments& a) {
       a.algorithm = "forest";
       a.forest.trees = -1;
     },
     "--trees: -1 is not a positive number"},
    {"Depth",
     [](PlanArguments& a) {
       a.algorithm = "forest";
       a.forest.depth = -2;
     },
     "--depth: -2 is not a positive number"},
    {"Loss",
     [](PlanArguments& a) {
       a.algorithm = "forest";
       a.forest.loss = "one";
     },
     "--loss: \"one\" is not a part from 0 to 0.5; write 1% or 0.01"},
    {"LossOfAll",
     [](PlanArguments& a) {
       a.algorithm = "forest";
       a.forest.loss = "100%";
     },
     "--loss: \"100%\" is not a part from 0 to 0.5; write 1% or 0.01"},
    {"LossThatIsNoNumber",
     [](PlanArguments& a) {
       a.algorithm = "forest";
       a.forest.loss = "nan";
     },
     "--loss: \"nan\""},
    {"Stages",
     [](PlanArguments& a) {
       a.algorithm = "forest";
       a.forest.stages = "three";
     },
     "--stages: \"three\" is not a way to plan; choose one, two, separate or paper"},
    {"ForestOptionsOfAnother",
     [](PlanArguments& a) {
       a.algorithm = "ring";
       a.forest.trees = 2;
     },
     "are for forest plans, not for ring; use --strategy forest"},
    {"ForestOfAnotherCollective",
     [](PlanArguments& a) {
       a.algorithm = "forest";
       a.collective = "broadcast";
     },
     "forest"},
    {"Pieces", [](PlanArguments& a) { a.pieces = -1; }, "--pieces: -1 is not"},
    {"MissingFile", [](PlanArguments& a) { a.topology = "/nonexistent/net.json"; },
     "/nonexistent/net.json"},
    {"Export", [](PlanArguments& a) { a.export_form = "pdf"; },
     "--export: \"pdf\" is not a form; choose text or msccl"},
    {"TwoThingsToOneOutput",
     [](PlanArguments& a) {
       a.export_form = "text";
       a.json = true;
     },
     "name a file for the program with -o"},
    {"UnequalBlocks",
     [](PlanArguments& a) {
       a.collective = "all-to-all";
       a.bytes = "40";
     },
     "--bytes: 10 elements cannot be cut into 4 equal blocks"},
};

std::string BadInputName(const ::testing::TestParamInfo<BadInput>& input) {
  return input.param.name;
}

INSTANTIATE_TEST_SUITE_P(All, PlanCommandBadInputTest, ::testing::ValuesIn(kBadInputs),
                         BadInputName);

TEST(PlanCommandTest, AFaultInTheFileIsNamedWithItsPlace) {
  const TemporaryFile file(R"({"nodes": [{"id": "d", "kind": "divice"}], "links": []})");
  PlanArguments arguments = OnHost(1, "1M");
  arguments.topology = file.path();
  const Result result = RunIt(arguments);
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err,
              HasSubstr(file.path() + ": nodes[0].kind: \"divice\" is not a kind; write device"));
}

struct BadTopology {
  const char* name;
  const char* links;  // of a network of devices a, b, c and a switch s
  const char* message;
};

class PlanCommandBadTopologyTest : public ::testing::TestWithParam<BadTopology> {};

TEST_P(PlanCommandBadTopologyTest, OneLineAndExitCode2) {
  const TemporaryFile file(
      std::string(R"({"nodes": [{"id": "a", "kind": "device"}, {"id": "b", "kind": "device"},
                     {"id": "c", "kind": "device"}, {"id": "s", "kind": "switch"}], "links": [)") +
      R"({"id": "a>s", "from": "a", "to": "s", "bandwidth": 1e9, "latency": 1e-5},
         {"id": "s>a", "from": "s", "to": "a", "bandwidth": 1e9, "latency": 1e-5},
         {"id": "b>s", "from": "b", "to": "s", "bandwidth": 1e9, "latency": 1e-5},
         {"id": "s>b", "from": "s", "to": "b", "bandwidth": 1e9, "latency": 1e-5})" +
      GetParam().links + "]}");
  for (const char* algorithm : {"forest", ""}) {
    PlanArguments arguments;
    arguments.topology = file.path();
    arguments.algorithm = algorithm;
    const Result result = RunIt(arguments);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, StartsWith("syncopate plan: " + file.path() + ": "));
    EXPECT_THAT(result.err, HasSubstr(GetParam().message));
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1);
  }
}

const BadTopology kBadTopologies[] = {
    {"Disconnected", "", "\"c\""},
    {"OneWayOnly", R"(, {"id": "c>s", "from": "c", "to": "s", "bandwidth": 1e9, "latency": 0})",
     "\"c\""},
    {"ZeroBandwidth", R"(, {"id": "c>s", "from": "c", "to": "s", "bandwidth": 0, "latency": 0})",
     "links[4].bandwidth"},
    {"NegativeBandwidth",
     R"(, {"id": "c>s", "from": "c", "to": "s", "bandwidth": -1e9, "latency": 0})",
     "links[4].bandwidth"},
    {"BandwidthInWords",
     R"(, {"id": "c>s", "from": "c", "to": "s", "bandwidth": "NaN", "latency": 0})",
     "links[4].bandwidth"},
    {"BandwidthNotANumber",
     R"(, {"id": "c>s", "from": "c", "to": "s", "bandwidth": NaN, "latency": 0})", ""},
    {"InfiniteBandwidth",
     R"(, {"id": "c>s", "from": "c", "to": "s", "bandwidth": 1e999, "latency": 0})", ""},
    {"NegativeLatency",
     R"(, {"id": "c>s", "from": "c", "to": "s", "bandwidth": 1e9, "latency": -1})",
     "links[4].latency"},
};

std::string BadTopologyName(const ::testing::TestParamInfo<BadTopology>& topology) {
  return topology.param.name;
}

INSTANTIATE_TEST_SUITE_P(All, PlanCommandBadTopologyTest, ::testing::ValuesIn(kBadTopologies),
                         BadTopologyName);

TEST(PlanCommandTest, FlagsReachTheCommand) {
  CLI::App app("test", "syncopate");
  int exit_code = -1;
  AddPlanCommand(app, exit_code);
  const char* words[] = {"syncopate", "plan", "-n", "4", "--bytes", "4Q", "--explain"};
  testing::internal::CaptureStderr();
  RunCommandLine(app, static_cast<int>(std::size(words)), words, exit_code);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("syncopate plan: --bytes: \"4Q\""));
  EXPECT_EQ(exit_code, 2);
  EXPECT_THAT(app.get_subcommand("plan")->help(),
              AllOf(HasSubstr("Examples:"), HasSubstr("--topology"), HasSubstr("--export")));
}

}  // namespace
}  // namespace syncopate::tools
