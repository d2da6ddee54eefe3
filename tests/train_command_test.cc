// `syncopate train` as a user meets it: small jobs on synthetic data, and what it says to mistakes.
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/temporary_folder_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "subprocess.h"

namespace syncopate::testing {
namespace {

using ::testing::ContainsRegex;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class TrainCommandTest : public ::testing::Test {
 protected:
  static std::vector<std::string> Small(std::vector<std::string> more) {
    std::vector<std::string> words = {
        SYNCOPATE_BINARY,      "train", "--model", "mlp",  "--data",    "synthetic",
        "--synthetic-samples", "400",   "--lr",    "0.05", "--threads", "1"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  const TemporaryFolder temporary_;
  const std::string folder_ = temporary_.path();
};

TEST_F(TrainCommandTest, TrainsAndEndsWithOneObject) {
  const std::string run = folder_ + "/first";
  Subprocess train(Small({"-n", "2", "--iterations", "20", "--run", run, "--json"}));
  EXPECT_EQ(train.Wait(), 0) << train.err();
  const auto summary = nlohmann::json::parse(train.out());
  for (const char* key : {"strategy", "schedule", "workers", "iterations", "seconds", "reached",
                          "accuracy", "loss", "iteration_ms_p50", "compute_ms_p50",
                          "exposed_comm_ms_p50", "waiting_ms_p50", "bytes_sent"}) {
    EXPECT_TRUE(summary.contains(key)) << key;
  }
  EXPECT_EQ(summary["workers"], 2);
  EXPECT_EQ(summary["iterations"], 20);
  EXPECT_GT(summary["accuracy"], 0.9);
  EXPECT_GT(summary["bytes_sent"], 0);
  EXPECT_EQ(summary["run"], run);
  for (const char* file : {"config.json", "metrics.jsonl", "timeline.json", "summary.json",
                           "model.pt", "model.json"}) {
    EXPECT_TRUE(std::filesystem::exists(run + "/" + file)) << file;
  }
  Subprocess report({SYNCOPATE_BINARY, "report", run, "--html", folder_ + "/page.html"});
  EXPECT_EQ(report.Wait(), 0) << report.err();
  EXPECT_THAT(report.out(), HasSubstr("where the time of an iteration went"));
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/page.html"));

  EXPECT_FALSE(std::filesystem::exists(run + "/run.lock"));
  Subprocess again(Small({"-n", "2", "--iterations", "20", "--run", run}));
  EXPECT_EQ(again.Wait(), 2);
  EXPECT_THAT(again.err(), HasSubstr("--overwrite"));
}

// Without --run, runs get names that do not collide, and each ends with what to do next.
TEST_F(TrainCommandTest, EveryRunHasAFolderAndEndsWithTheNextCommand) {
  const Subprocess::Options here = {.before_exec = [this] { (void)!chdir(folder_.c_str()); }};
  for (const std::string name : {"mlp-synthetic-1", "mlp-synthetic-2"}) {
    Subprocess train(Small({"--iterations", "3", "--evaluate-samples", "8"}), here);
    EXPECT_EQ(train.Wait(), 0) << train.err();
    const std::string run = absl::StrCat(folder_, "/runs/", name);
    EXPECT_THAT(train.out(),
                EndsWith(absl::StrCat("the model is runs/", name, "/model.pt\n",
                                      "next: syncopate report ", name, " --html report.html\n")));
    EXPECT_TRUE(std::filesystem::exists(run + "/model.pt"));
    Subprocess next({SYNCOPATE_BINARY, "report", name, "--html", "report.html"}, here);
    EXPECT_EQ(next.Wait(), 0) << next.err();
    EXPECT_TRUE(std::filesystem::exists(folder_ + "/report.html"));
  }
  // What cannot begin leaves no folder behind.
  Subprocess bad(Small({"--batch", "100000", "--iterations", "1"}), here);
  EXPECT_EQ(bad.Wait(), 2);
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/runs/mlp-synthetic-3"));
}

// The value of a sample of metrics.prom, which has one label.
double Sample(const std::string& run, const std::string& name) {
  std::ifstream file(run + "/metrics.prom");
  for (std::string line; std::getline(file, line);) {
    if (!absl::StartsWith(line, name + "{")) continue;
    return std::stod(line.substr(line.rfind(' ') + 1));
  }
  ADD_FAILURE() << "no " << name << " in " << run;
  return -1;
}

TEST_F(TrainCommandTest, PrometheusCountsTheBytesOfAllWorkers) {
  const std::string whole = folder_ + "/whole", broken = folder_ + "/broken";
  Subprocess train(
      Small({"-n", "2", "--iterations", "5", "--schedule", "none", "--run", whole, "--json"}));
  ASSERT_EQ(train.Wait(), 0) << train.err();
  const auto summary = nlohmann::json::parse(train.out());
  const double bytes = summary["bytes_sent"];
  EXPECT_EQ(Sample(whole, "syncopate_bytes_sent_total"), bytes);
  EXPECT_EQ(Sample(whole, "syncopate_iterations_total"), 5);
  EXPECT_NEAR(Sample(whole, "syncopate_accuracy"), summary["accuracy"].get<double>(), 1e-6);
  // What a run leaves that never came to its end was written while it ran. With --clip the bytes of
  // an iteration are sent when it ends.
  std::vector<std::string> command =
      Small({"-n", "2", "--iterations", "200", "--schedule", "none", "--clip", "1e30",
             "--report-every", "1", "--run", broken});
  // The rate grows until the loss is no number, some iterations later.
  *(std::find(command.begin(), command.end(), "--lr") + 1) = "1000";
  // Each iteration leaves time for the line of the one before to be written.
  command.insert(command.end(), {"--warmup", "1000", "--pace", "20ms,100000"});
  Subprocess diverges(command);
  ASSERT_EQ(diverges.Wait(), 1) << diverges.err();
  EXPECT_THAT(diverges.err(), HasSubstr("is no number"));
  EXPECT_EQ(Sample(broken, "syncopate_bytes_sent_total"),
            bytes / 5 * Sample(broken, "syncopate_iterations_total"));
}

TEST_F(TrainCommandTest, TheSummaryExplainsTheWallTime) {
  const std::string run = folder_ + "/first";
  const auto begin = std::chrono::steady_clock::now();
  Subprocess train(Small({"-n", "2", "--iterations", "30", "--evaluate-every", "10",
                          "--checkpoint-every", "10", "--run", run, "--json"}));
  ASSERT_EQ(train.Wait(), 0) << train.err();
  const double elapsed =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const auto summary = nlohmann::json::parse(train.out());
  const auto sum = [](const nlohmann::json& parts) {
    double all = 0;
    for (const auto& [name, value] : parts.items()) {
      EXPECT_GE(value.get<double>(), 0) << name;
      all += value.get<double>();
    }
    return all;
  };
  const auto& wall = summary["wall_seconds"];
  EXPECT_NEAR(sum(wall), summary["seconds"].get<double>(), 1e-6) << summary;
  EXPECT_LT(summary["seconds"], elapsed + 0.02);  // the system tells the start to 10 ms
  for (const char* part : {"start", "iterations", "evaluation", "checkpoints", "end"}) {
    EXPECT_GT(wall[part], 0) << part;
  }
  // 30 mean iterations are what the wall time has for iterations, as rank 0 spent it.
  EXPECT_NEAR(30e-3 * sum(summary["mean_ms"]) / wall["iterations"].get<double>(), 1, 0.4)
      << summary;
  Subprocess report({SYNCOPATE_BINARY, "report", run});
  EXPECT_EQ(report.Wait(), 0) << report.err();
  EXPECT_THAT(report.out(), HasSubstr("\n    30 iterations "));
  EXPECT_THAT(report.out(), HasSubstr("\n    checkpoints "));
}

TEST_F(TrainCommandTest, ProgressComesWithoutATerminalToo) {
  const std::vector<std::string> job = {"-n",           "2",          "--iterations", "40", "--run",
                                        folder_ + "/a", "--overwrite"};
  const Subprocess::Options often = {.environment = {"SYNCOPATE_PROGRESS=1ms"}};
  Subprocess train(Small(job), often);
  EXPECT_EQ(train.Wait(), 0) << train.err();
  EXPECT_THAT(train.err(), ContainsRegex("syncopate train: [0-9]+ s so far: starting\n"));
  EXPECT_THAT(train.err(), ContainsRegex(" so far: iteration [0-9]+ of 40, loss .* s left\n"));
  std::vector<std::string> quiet = job;
  quiet.push_back("--quiet");
  Subprocess silent(Small(quiet), often);
  EXPECT_EQ(silent.Wait(), 0);
  EXPECT_EQ(silent.err(), "");
  Subprocess quick(Small(job));  // it takes less than the half minute after which a line comes
  EXPECT_EQ(quick.Wait(), 0);
  EXPECT_EQ(quick.err(), "");
  Subprocess wrong(Small(job), {.environment = {"SYNCOPATE_PROGRESS=soon"}});
  EXPECT_EQ(wrong.Wait(), 2);
  EXPECT_THAT(wrong.err(), StartsWith("syncopate train: SYNCOPATE_PROGRESS"));
}

TEST_F(TrainCommandTest, StopsAtATargetAndSaysIfItWasNotReached) {
  Subprocess train(Small({"-n", "1", "--iterations", "200", "--evaluate-every", "10", "--run",
                          folder_ + "/reached", "--target-accuracy", "0.9", "--json"}));
  EXPECT_EQ(train.Wait(), 0) << train.err();
  auto summary = nlohmann::json::parse(train.out());
  EXPECT_EQ(summary["reached"], true);
  EXPECT_LT(summary["iterations"], 200);
  Subprocess never(Small({"-n", "2", "--iterations", "2", "--target-loss", "0", "--run",
                          folder_ + "/missed", "--json"}));
  EXPECT_EQ(never.Wait(), 1);
  EXPECT_EQ(nlohmann::json::parse(never.out())["reached"], false);
  // One line, and nothing of ranks that failed: none has.
  EXPECT_THAT(never.err(), StartsWith("syncopate train: the target was not reached after 2 "
                                      "iterations: loss "));
  EXPECT_THAT(never.err(), EndsWith(" (target 0)\n"));
  EXPECT_EQ(std::count(never.err().begin(), never.err().end(), '\n'), 1) << never.err();
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/missed/model.pt"));
}

// Of two runs in one folder the second is refused, whatever it asks for, and does no harm to the
// first. What runs is meanwhile easy to tell in the list of processes.
TEST_F(TrainCommandTest, AFolderIsForOneRunAtATime) {
  const std::string run = folder_ + "/a", marker = UniqueMarker();
  Subprocess first(Small({"-n", "2", "--iterations", "1000000", "--report-every", "1", "--run", run,
                          "--checkpoint-every", "5"}),
                   {.environment = {"SYNCOPATE_TEST_MARKER=" + marker}});
  const int64_t deadline_ns = MonotonicClock().NowNs() + kDeadlineNs;
  while (!std::filesystem::exists(run + "/checkpoint.json") &&
         MonotonicClock().NowNs() < deadline_ns) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  for (const char* how : {"--overwrite", "--resume"}) {
    Subprocess second({SYNCOPATE_BINARY, "train", "--run", run, how, "--json"});
    EXPECT_EQ(second.Wait(), 2);
    EXPECT_THAT(second.err(), StartsWith(absl::StrCat("syncopate train: run a is under way, pid ",
                                                      first.pid(), ";")));
  }
  EXPECT_TRUE(std::filesystem::exists(run + "/metrics.jsonl"));
  int workers = 0;
  for (const pid_t pid : MarkedProcesses(marker)) {
    const std::string line = CommandLineOf(pid);
    if (absl::StrContains(line, "syncopate-train ") && !absl::StrContains(line, " launch ")) {
      EXPECT_THAT(line, EndsWith(absl::StrCat("/syncopate-train ", run, " --lines ")));
      ++workers;
    }
    EXPECT_THAT(line, Not(HasSubstr("{")));
  }
  EXPECT_EQ(workers, 2);

  // The lock of a killed command blocks nobody once its workers are gone.
  ASSERT_EQ(kill(first.pid(), SIGKILL), 0);
  first.Wait();
  ASSERT_TRUE(WaitUntilNoneIsLeft(marker));
  Subprocess third(Small({"--iterations", "2", "--run", run, "--overwrite", "--json"}));
  EXPECT_EQ(third.Wait(), 0) << third.err();
  EXPECT_FALSE(std::filesystem::exists(run + "/checkpoint.json"));  // of the run that it replaced
}

// Real data, learned by two workers. `./check` has little time: docs/training.md has the figures of
// a whole run.
TEST_F(TrainCommandTest, LearnsMnist) {
  Subprocess job({SYNCOPATE_BINARY,
                  "train",
                  "-n",
                  "2",
                  "--json",
                  "--model",
                  "cnn",
                  "--data",
                  "mnist",
                  "--batch",
                  "64",
                  "--lr",
                  "0.02",
                  "--iterations",
                  "600",
                  "--evaluate-every",
                  "100",
                  "--evaluate-samples",
                  "1000",
                  "--target-accuracy",
                  "0.95",
                  "--run",
                  folder_ + "/mnist"},
                 // A machine without a network is to say so soon.
                 {.environment = {"npm_config_fetch_retries=0", "npm_config_fetch_timeout=20000"}});
  const int code = job.Wait();
  if (code != 0 && absl::StrContains(job.err(), "--data synthetic")) {
    GTEST_SKIP() << "MNIST is neither in the cache nor to be had: " << job.err();
  }
  ASSERT_EQ(code, 0) << job.err() << job.out();
  const auto summary = nlohmann::json::parse(job.out());
  EXPECT_EQ(summary.at("reached"), true);
  EXPECT_GE(summary.at("accuracy"), 0.95);
  EXPECT_EQ(summary.at("workers"), 2);
}

// The log of decisions, read by a program that knows only docs/observe.md.
TEST_F(TrainCommandTest, TheLogTellsEveryDecisionTransferAndUpdate) {
  const int workers = 3, iterations = 6;
  const std::string log = folder_ + "/decisions.jsonl";
  std::ofstream(log) << "what an earlier run left\n";
  Subprocess train(
      Small({"-n", absl::StrCat(workers), "--iterations", absl::StrCat(iterations), "--schedule",
             "wfbp", "--batch", "48", "--run", folder_ + "/logged", "--log", log}));
  ASSERT_EQ(train.Wait(), 0) << train.err();
  struct Rank {
    int tensors = 0;
    double time = 0;                               // of the last decision
    std::map<int64_t, nlohmann::json> started;     // transfers that were decided on
    std::vector<nlohmann::json> ended;             // in their order
    std::map<std::pair<int64_t, int>, int> steps;  // by iteration and tensor
    std::map<int64_t, int> begun;                  // iterations
  };
  std::map<int, Rank> ranks;
  std::ifstream file(log);
  for (std::string line; std::getline(file, line);) {
    const auto entry = nlohmann::json::parse(line);
    const std::string kind = entry.at("kind");
    Rank& rank = ranks[entry.at("rank")];
    if (kind == "job") {
      EXPECT_EQ(entry.at("strategy"), "bsp");
      EXPECT_EQ(entry.at("options").at("size"), workers);
      rank.tensors = static_cast<int>(entry.at("options").at("table").at("tensors").size());
      continue;
    }
    ASSERT_GT(rank.tensors, 0) << "a line before that of the job: " << line;
    if (kind == "decision") {
      EXPECT_GE(entry.at("time"), rank.time);
      rank.time = entry.at("time");
      const auto& event = entry.at("event");
      if (event.at("kind") == "iteration-began") ++rank.begun[event.at("iteration")];
      for (const auto& command : entry.at("commands")) {
        if (command.at("kind") != "start-transfer") continue;
        EXPECT_TRUE(rank.started.emplace(command.at("transfer"), command).second) << line;
      }
    } else if (kind == "transfer") {
      EXPECT_EQ(rank.started.at(entry.at("start").at("transfer")), entry.at("start"));
      EXPECT_LE(entry.at("begin"), entry.at("time"));
      EXPECT_GT(entry.at("bytes"), 0);
      EXPECT_FALSE(entry.contains("error")) << line;
      rank.ended.push_back(entry);
    } else {
      ASSERT_EQ(kind, "update") << line;
      const auto& apply = entry.at("apply");
      for (int t = apply.at("first"); t <= apply.at("last"); ++t) {
        ++rank.steps[{entry.at("iteration"), t}];
      }
    }
  }
  ASSERT_EQ(ranks.size(), static_cast<size_t>(workers));
  for (auto& [number, rank] : ranks) {
    EXPECT_EQ(rank.begun.size(), static_cast<size_t>(iterations));
    // Every transfer that was decided on ended once, and all ranks decided on the same ones.
    EXPECT_EQ(rank.ended.size(), rank.started.size());
    EXPECT_EQ(rank.started, ranks[0].started);
    // Every tensor was updated once in every iteration.
    EXPECT_EQ(rank.steps.size(), static_cast<size_t>(iterations * rank.tensors));
    for (const auto& [step, times] : rank.steps) EXPECT_EQ(times, 1);
  }
  // A file that cannot be made is told.
  Subprocess nowhere(Small({"--iterations", "1", "--log", folder_ + "/no/such/folder"}));
  EXPECT_EQ(nowhere.Wait(), 2);
  EXPECT_THAT(nowhere.err(), HasSubstr("--log: "));
}

TEST_F(TrainCommandTest, MistakesGetOneLineAndCode2) {
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{"--model", "lenet"}, "--model lenet: there are mlp, cnn"},
      {{"--data", "imagenet"}, "--data imagenet: there are mnist"},
      {{"--model", "cnn", "--data", "text"}, "--data text: cnn reads images"},
      {{"--schedule", "best"}, "--schedule best: there are none"},
      {{"--strategy", "magic"}, "--strategy magic: there is no strategy \"magic\"; there are: bsp"},
      {{"--replay", "resnet-152", "--log", "x"}, "--log: a replay writes none"},
      {{"--batch", "3", "-n", "4"}, "--batch 3 is less than a sample for each of 4 workers"},
      {{"--batches", "1,2", "-n", "3"}, "--batches has 2 entries for 3 workers"},
      {{"--batches", "1,x", "-n", "2"}, "--batches"},
      {{"--rate", "triangle"}, "triangle"},
      {{"--resume"}, "--resume: which run?"},
      {{"--resume", "--run", folder_ + "/none"}, "there is no run in"},
      {{"--lab", folder_ + "/none.toml"}, "none.toml"},
  };
  for (const auto& [words, message] : cases) {
    std::vector<std::string> command = {SYNCOPATE_BINARY, "train"};
    command.insert(command.end(), words.begin(), words.end());
    Subprocess train(command);
    EXPECT_EQ(train.Wait(), 2) << message << train.err();
    EXPECT_THAT(train.err(), StartsWith("syncopate train: ")) << message;
    EXPECT_THAT(train.err(), HasSubstr(message));
    EXPECT_EQ(train.out(), "");
  }
}

}  // namespace
}  // namespace syncopate::testing
