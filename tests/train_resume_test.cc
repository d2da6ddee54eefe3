// Training that stops and goes on: real processes, one of which is killed.
#include <sys/types.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/clock.h"
#include "base/parse.h"
#include "base/temporary_folder_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "subprocess.h"

namespace syncopate::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Noticing takes a second or so; the rest is a busy machine.
constexpr int64_t kFewSecondsNs = 15'000'000'000;
constexpr int64_t kEvery = 10;  // iterations between checkpoints

class TrainResumeTest : public ::testing::Test {
 protected:
  std::string Run(const std::string& name) const { return absl::StrCat(folder_, "/", name); }

  static std::vector<std::string> Train(int workers, const std::vector<std::string>& options) {
    std::vector<std::string> command = {SYNCOPATE_BINARY, "train", "-n", absl::StrCat(workers),
                                        "--json"};
    command.insert(command.end(), options.begin(), options.end());
    return command;
  }
  // With what the run remembers.
  static std::vector<std::string> Resume(const std::string& run,
                                         const std::vector<std::string>& options) {
    std::vector<std::string> command = {SYNCOPATE_BINARY, "train", "--json",
                                        "--run",          run,     "--resume"};
    command.insert(command.end(), options.begin(), options.end());
    return command;
  }
  // Small, and with dropout, whose random numbers each process draws on its own.
  static std::vector<std::string> Job(const std::string& run, int64_t iterations) {
    return {"--model",
            "transformer",
            "--data",
            "synthetic-text",
            "--dropout",
            "0.1",
            "--batch",
            "8",
            "--iterations",
            absl::StrCat(iterations),
            "--schedule",
            "wfbp",
            "--optimizer",
            "adam",
            "--lr",
            "0.001",
            "--threads",
            "1",
            "--run",
            run,
            "--evaluate-samples",
            "8",
            "--checkpoint-every",
            absl::StrCat(kEvery)};
  }

  static std::string LastLine(const std::string& text) {
    const std::vector<std::string> lines = absl::StrSplit(text, '\n', absl::SkipEmpty());
    return lines.empty() ? "" : lines.back();
  }
  // What a run that was cut off says last.
  static std::string HowToGoOn(const std::string& run) {
    return absl::StrCat("syncopate train: checkpoint at ", LastCheckpoint(run),
                        "; go on with: syncopate train --run ", run, " --resume");
  }

  // Every file of a folder, with what it holds and when it was written.
  static std::map<std::string, std::pair<std::string, std::filesystem::file_time_type>> Contents(
      const std::string& folder) {
    std::map<std::string, std::pair<std::string, std::filesystem::file_time_type>> contents;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      if (!entry.is_regular_file()) continue;
      contents[entry.path().string()] = {ReadFile(entry.path().string(), 64 << 20).value_or(""),
                                         entry.last_write_time()};
    }
    return contents;
  }

  // Of the last whole set; -1: there is none yet.
  static int64_t LastCheckpoint(const std::string& run) {
    const auto text = ReadFile(run + "/checkpoint.json", 4096);
    if (!text.ok()) return -1;
    return nlohmann::json::parse(*text).at("iteration").get<int64_t>();
  }

  // Looks until it is so; false at the deadline.
  static bool Await(const std::function<bool()>& done) {
    const int64_t deadline_ns = MonotonicClock().NowNs() + kDeadlineNs;
    while (!done()) {
      if (MonotonicClock().NowNs() >= deadline_ns) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return true;
  }
  static int64_t AwaitCheckpoint(const std::string& run) {
    Await([&] { return LastCheckpoint(run) >= 0; });
    return LastCheckpoint(run);
  }

  // What a worker had at that iteration: parameters, optimizer, generator, place in the data.
  static std::string StateOf(const std::string& run, int64_t iteration, int rank) {
    const auto bytes =
        ReadFile(absl::StrCat(run, "/checkpoint-", iteration, "/rank-", rank), 64 << 20);
    EXPECT_TRUE(bytes.ok()) << bytes.status();
    return bytes.value_or("");
  }

  const TemporaryFolder temporary_;
  const std::string folder_ = temporary_.path();
};

TEST_F(TrainResumeTest, KilledWorkerIsNamedAndTheRunResumesBitForBit) {
  constexpr int kWorkers = 4, kVictim = 2;
  const std::string run = Run("killed");
  const std::string marker = UniqueMarker();
  Subprocess job(Train(kWorkers, Job(run, 1'000'000)),
                 {.environment = {absl::StrCat("SYNCOPATE_TEST_MARKER=", marker)}});
  ASSERT_GT(AwaitCheckpoint(run), 0);
  const pid_t victim = WorkerOf(marker, kVictim);
  ASSERT_GT(victim, 0);
  ASSERT_EQ(kill(victim, SIGKILL), 0);
  const int64_t killed_ns = MonotonicClock().NowNs();
  EXPECT_EQ(job.Wait(), 128 + SIGKILL) << job.err();
  EXPECT_LT(MonotonicClock().NowNs() - killed_ns, kFewSecondsNs);
  EXPECT_THAT(job.err(), HasSubstr(absl::StrCat("rank ", kVictim)));
  EXPECT_EQ(job.out(), "");
  EXPECT_EQ(LastLine(job.err()), HowToGoOn(run));
  EXPECT_TRUE(WaitUntilNoneIsLeft(marker));

  const int64_t last = LastCheckpoint(run);
  ASSERT_GT(last, 0);
  const int64_t end = last + 2 * kEvery;
  Subprocess resumed(Resume(run, {"--iterations", absl::StrCat(end)}));
  ASSERT_EQ(resumed.Wait(), 0) << resumed.err();
  const auto summary = nlohmann::json::parse(resumed.out());
  EXPECT_EQ(summary.at("workers"), kWorkers);  // as the run began
  EXPECT_EQ(summary.at("iterations"), end);
  EXPECT_EQ(summary.at("resumed_at"), std::vector<int64_t>{last});
  EXPECT_EQ(summary.at("part_iterations"), 2 * kEvery);
  EXPECT_GT(summary.at("seconds").get<double>(), summary.at("part_seconds").get<double>());
  EXPECT_EQ(summary.at("schedule"), "wfbp");  // as the run began

  const std::string straight = Run("straight");
  Subprocess whole(Train(kWorkers, Job(straight, end)));
  ASSERT_EQ(whole.Wait(), 0) << whole.err();
  for (int rank = 0; rank < kWorkers; ++rank) {
    EXPECT_TRUE(StateOf(run, end, rank) == StateOf(straight, end, rank)) << rank;
  }
  EXPECT_FALSE(StateOf(run, end, 0) == StateOf(run, end, 1));  // each has its own random numbers
}

// Ctrl-C, and going on with the printed command.
TEST_F(TrainResumeTest, AnInterruptedRunSaysHowToGoOn) {
  const std::string run = Run("interrupted"), marker = UniqueMarker();
  Subprocess job(Train(2, Job(run, 1'000'000)),
                 {.environment = {absl::StrCat("SYNCOPATE_TEST_MARKER=", marker)}});
  ASSERT_GT(AwaitCheckpoint(run), 0);
  ASSERT_EQ(kill(job.pid(), SIGINT), 0);
  EXPECT_EQ(job.Wait(), 128 + SIGINT) << job.err();
  EXPECT_TRUE(WaitUntilNoneIsLeft(marker));
  ASSERT_EQ(LastLine(job.err()), HowToGoOn(run));

  const std::string line = LastLine(job.err());
  std::vector<std::string> command =
      absl::StrSplit(line.substr(line.find("syncopate train --run")), ' ');
  command[0] = SYNCOPATE_BINARY;
  command.insert(command.end(), {"--iterations", absl::StrCat(LastCheckpoint(run) + 5), "--json"});
  Subprocess resumed(command);
  ASSERT_EQ(resumed.Wait(), 0) << resumed.err();
  EXPECT_EQ(nlohmann::json::parse(resumed.out()).at("workers"), 2);
}

TEST_F(TrainResumeTest, WithoutACheckpointItSaysHowToGetOne) {
  for (const bool asked : {false, true}) {
    const std::string run = Run(asked ? "not-yet" : "never");
    std::vector<std::string> options = {"--model",   "mlp", "--data",         "synthetic",
                                        "--threads", "1",   "--iterations",   "100000000",
                                        "--run",     run,   "--report-every", "1"};
    if (asked) options.insert(options.end(), {"--checkpoint-every", "100000000"});
    Subprocess job(Train(1, options));
    ASSERT_TRUE(Await([&] {
      std::error_code error;
      return std::filesystem::file_size(run + "/metrics.jsonl", error) > 0 && !error;
    }));
    ASSERT_EQ(kill(job.pid(), SIGTERM), 0);
    EXPECT_EQ(job.Wait(), 128 + SIGTERM) << job.err();
    EXPECT_THAT(LastLine(job.err()),
                asked ? HasSubstr("no checkpoint yet (the first comes at iteration 100000000)")
                      : HasSubstr("--checkpoint-every N saves one"));
  }
}

// Hosts and how to reach them are remembered, too; what is given now wins.
TEST_F(TrainResumeTest, GoesOnWhereItRan) {
  const std::string run = Run("hosts");
  std::vector<std::string> options = Job(run, kEvery);
  options.insert(options.end(), {"--json", "-H", "a:1,b:2", "--agent", "env AGENT_FOR={host}"});
  options.insert(options.begin(), {SYNCOPATE_BINARY, "train"});
  Subprocess first(options);
  ASSERT_EQ(first.Wait(), 0) << first.err();
  EXPECT_EQ(nlohmann::json::parse(first.out()).at("workers"), 3);
  Subprocess resumed(Resume(run, {"--iterations", "12"}));
  ASSERT_EQ(resumed.Wait(), 0) << resumed.err();
  EXPECT_EQ(nlohmann::json::parse(resumed.out()).at("workers"), 3);
  const auto place = nlohmann::json::parse(*ReadFile(run + "/config.json", 1 << 20)).at("place");
  EXPECT_EQ(place.at("hosts"), "a:1,b:2");
  EXPECT_EQ(place.at("agent"), "env AGENT_FOR={host}");

  Subprocess elsewhere(Resume(run, {"--iterations", "14", "-H", "localhost:3"}));
  ASSERT_EQ(elsewhere.Wait(), 0) << elsewhere.err();
  EXPECT_EQ(nlohmann::json::parse(elsewhere.out()).at("workers"), 3);
  Subprocess fewer(Resume(run, {"--iterations", "16", "-H", "localhost:2"}));
  EXPECT_EQ(fewer.Wait(), 2);
  EXPECT_THAT(fewer.err(),
              AllOf(HasSubstr("is of 3 workers, this job has 2"), HasSubstr("as many must go on")));
}

TEST_F(TrainResumeTest, GoesOnInItsLab) {
  const std::string file = folder_ + "/two.toml", run = Run("lab");
  std::ofstream(file) << "[lab]\nname = \"two\"\n[[switch]]\nname = \"s\"\n"
                         "[[host]]\nname = \"h\"\ncount = 2\nswitch = \"s\"\n";
  std::vector<std::string> options = Job(run, kEvery);
  options.insert(options.begin(), {SYNCOPATE_BINARY, "train"});
  options.insert(options.end(), {"--json", "--lab", "two.toml"});
  Subprocess first(options, {.before_exec = [this] { (void)!chdir(folder_.c_str()); }});
  if (first.Wait() != 0 && (geteuid() != 0 || absl::StrContains(first.err(), "namespace"))) {
    GTEST_SKIP() << "no labs here: " << first.err();
  }
  ASSERT_EQ(LastCheckpoint(run), kEvery) << first.err();
  Subprocess resumed(Resume(run, {"--iterations", "12"}));
  ASSERT_EQ(resumed.Wait(), 0) << resumed.err();
  EXPECT_EQ(nlohmann::json::parse(resumed.out()).at("workers"), 2);
  const auto config = nlohmann::json::parse(*ReadFile(run + "/config.json", 1 << 20));
  EXPECT_EQ(config.at("place").at("lab"), file);
}

// The record of a run that goes on holds all of its parts.
TEST_F(TrainResumeTest, TheRecordOfAllPartsIsKept) {
  const std::string run = Run("parts");
  std::vector<std::string> options = Job(run, 25);
  options.insert(options.end(), {"--report-every", "5"});
  Subprocess first(Train(1, options));
  ASSERT_EQ(first.Wait(), 0) << first.err();
  const double seconds = nlohmann::json::parse(first.out()).at("seconds");
  // The last checkpoint is at 20, so iterations 21 to 25 are done again.
  Subprocess second({SYNCOPATE_BINARY, "train", "--run", run, "--resume", "--iterations", "40"});
  ASSERT_EQ(second.Wait(), 0) << second.err();
  EXPECT_THAT(second.out(), HasSubstr("20; since then 20 iterations in "));

  Subprocess report({SYNCOPATE_BINARY, "report", run});
  ASSERT_EQ(report.Wait(), 0) << report.err();
  EXPECT_THAT(report.out(), HasSubstr("resumed at                20; since then 20 iterations"));
  EXPECT_THAT(report.out(), HasSubstr("means of 40 iterations"));
  Subprocess json({SYNCOPATE_BINARY, "report", run, "--json"});
  ASSERT_EQ(json.Wait(), 0) << json.err();
  const auto record = nlohmann::json::parse(json.out()).at("runs").at(0);
  EXPECT_EQ(record.at("iterations"), 40);
  EXPECT_EQ(record.at("breakdown").at("workers").at(0).at("iterations"), 40);
  const double whole = record.at("seconds"), part = record.at("part_seconds");
  EXPECT_NEAR(whole, seconds + part, 0.1 * whole);

  // On the page, curves are drawn from these: neither axis runs back.
  const auto text = ReadFile(run + "/metrics.jsonl", 1 << 20);
  ASSERT_TRUE(text.ok()) << text.status();
  double last_seconds = 0;
  int lines = 0;
  for (const absl::string_view line : absl::StrSplit(*text, '\n', absl::SkipEmpty())) {
    const double now = nlohmann::json::parse(line).at("seconds");
    EXPECT_GE(now, last_seconds) << line;
    last_seconds = now;
    ++lines;
  }
  EXPECT_GT(lines, 10);
  EXPECT_THAT(*text, HasSubstr("\"resumed at 20\""));
  EXPECT_TRUE(std::filesystem::exists(run + "/part1-timeline.json"));
  EXPECT_TRUE(std::filesystem::exists(run + "/timeline.json"));
}

TEST_F(TrainResumeTest, WithNothingLeftToDoNothingChanges) {
  const std::string run = Run("done");
  Subprocess first(Train(1, Job(run, 15)));
  ASSERT_EQ(first.Wait(), 0) << first.err();
  const auto before = Contents(run);
  ASSERT_GT(before.size(), 5u);
  Subprocess again({SYNCOPATE_BINARY, "train", "--run", run, "--resume"});
  EXPECT_EQ(again.Wait(), 0) << again.err();
  EXPECT_THAT(again.out(), HasSubstr("nothing is left to do: all 15 iterations are done"));
  Subprocess json(Resume(run, {"--iterations", "12"}));
  EXPECT_EQ(json.Wait(), 0) << json.err();
  EXPECT_EQ(nlohmann::json::parse(json.out()).at("iterations"), 15);
  EXPECT_THAT(json.err(), HasSubstr("nothing is left to do"));
  EXPECT_TRUE(before == Contents(run));
}

// Without a launcher nobody else tells: each survivor must.
TEST_F(TrainResumeTest, SurvivorsNameTheKilledWorker) {
  constexpr int kWorkers = 4, kVictim = 1;
  const std::string run = Run("alone");
  const std::string options = absl::StrCat(
      R"({"model":"mlp","data":"synthetic","batch":16,"iterations":1000000,"synthetic_samples":64,)",
      R"("schedule":"wfbp","threads":1,"checkpoint_every":5,"run_folder":")", run, "\"}");
  const std::string job = absl::StrCat("train-test-", UniqueMarker());
  std::vector<std::unique_ptr<Subprocess>> workers;
  for (int rank = 0; rank < kWorkers; ++rank) {
    workers.push_back(std::make_unique<Subprocess>(
        std::vector<std::string>{TRAIN_WORKER_BINARY, run},
        Subprocess::Options{.environment = {absl::StrCat("SYNCOPATE_TRAIN_OPTIONS=", options),
                                            absl::StrCat("SYNCOPATE_JOB=", job),
                                            absl::StrCat("SYNCOPATE_RANK=", rank),
                                            absl::StrCat("SYNCOPATE_SIZE=", kWorkers),
                                            absl::StrCat("SYNCOPATE_LOCAL_RANK=", rank),
                                            absl::StrCat("SYNCOPATE_LOCAL_SIZE=", kWorkers)}}));
  }
  ASSERT_GT(AwaitCheckpoint(run), 0);
  ASSERT_EQ(kill(workers[kVictim]->pid(), SIGKILL), 0);
  const int64_t killed_ns = MonotonicClock().NowNs();
  for (int rank = 0; rank < kWorkers; ++rank) {
    SCOPED_TRACE(rank);
    const int code = workers[static_cast<size_t>(rank)]->Wait();
    if (rank == kVictim) continue;
    EXPECT_EQ(code, 1);
    EXPECT_THAT(workers[static_cast<size_t>(rank)]->err(),
                AllOf(HasSubstr(absl::StrCat("rank ", rank, ":")),
                      HasSubstr(absl::StrCat("worker ", kVictim, " died"))));
  }
  EXPECT_LT(MonotonicClock().NowNs() - killed_ns, kFewSecondsNs);
}

TEST_F(TrainResumeTest, RefusesToResumeWithOtherOptions) {
  const std::string run = Run("other");
  Subprocess first(Train(2, Job(run, kEvery)));
  ASSERT_EQ(first.Wait(), 0) << first.err();
  Subprocess resumed(Train(2, {"--run", run, "--resume", "--iterations", "20", "--lr", "0.5"}));
  EXPECT_EQ(resumed.Wait(), 2);
  EXPECT_EQ(resumed.out(), "");
  EXPECT_THAT(resumed.err(), AllOf(HasSubstr("learning_rate 0.5 (before: 0.001)"),
                                   Not(HasSubstr("rank 1:"))));  // one of them is enough
  EXPECT_EQ(LastCheckpoint(run), kEvery);

  Subprocess more(Train(3, {"--run", run, "--resume", "--iterations", "20"}));
  EXPECT_EQ(more.Wait(), 2);
  EXPECT_THAT(more.err(), HasSubstr("is of 2 workers, this job has 3"));
}

TEST_F(TrainResumeTest, RefusesToResumeWhatIsNotThere) {
  Subprocess nothing(Train(2, {"--run", Run("nothing"), "--resume"}));
  EXPECT_EQ(nothing.Wait(), 2);
  EXPECT_THAT(nothing.err(), HasSubstr("nothing"));

  const std::string run = Run("without");
  Subprocess first(
      Train(2, {"--model", "mlp", "--data", "synthetic", "--synthetic-samples", "64", "--batch",
                "8", "--iterations", "2", "--evaluate-samples", "8", "--run", run}));
  ASSERT_EQ(first.Wait(), 0) << first.err();
  Subprocess without(Train(2, {"--run", run, "--resume", "--iterations", "4"}));
  EXPECT_EQ(without.Wait(), 2);
  EXPECT_THAT(without.err(), AllOf(HasSubstr(run), HasSubstr("no whole checkpoint")));
}

}  // namespace
}  // namespace syncopate::testing
