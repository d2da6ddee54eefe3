// Training that stops and goes on: real processes, one of which is killed.
#include <sys/types.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/parse.h"
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
  TrainResumeTest() {
    std::string pattern = ::testing::TempDir() + "/train-resume-XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  ~TrainResumeTest() override { std::filesystem::remove_all(folder_); }

  std::string Run(const std::string& name) const { return absl::StrCat(folder_, "/", name); }

  static std::vector<std::string> Train(int workers, const std::vector<std::string>& options) {
    std::vector<std::string> command = {SYNCOPATE_BINARY, "train", "-n", absl::StrCat(workers),
                                        "--json"};
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

  // Of the last whole set; -1: there is none yet.
  static int64_t LastCheckpoint(const std::string& run) {
    const auto text = ReadFile(run + "/checkpoint.json", 4096);
    if (!text.ok()) return -1;
    return nlohmann::json::parse(*text).at("iteration").get<int64_t>();
  }

  // Looks until there is one, or the deadline.
  static int64_t AwaitCheckpoint(const std::string& run) {
    const int64_t deadline_ns = MonotonicClock().NowNs() + kDeadlineNs;
    while (LastCheckpoint(run) < 0 && MonotonicClock().NowNs() < deadline_ns) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return LastCheckpoint(run);
  }

  // What a worker had at that iteration: parameters, optimizer, generator, place in the data.
  static std::string StateOf(const std::string& run, int64_t iteration, int rank) {
    const auto bytes =
        ReadFile(absl::StrCat(run, "/checkpoint-", iteration, "/rank-", rank), 64 << 20);
    EXPECT_TRUE(bytes.ok()) << bytes.status();
    return bytes.value_or("");
  }

  std::string folder_;
};

// The worker processes of a job that carries `marker`, by rank.
pid_t WorkerOf(const std::string& marker, int rank) {
  for (const pid_t pid : MarkedProcesses(marker)) {
    std::ifstream environment(absl::StrCat("/proc/", pid, "/environ"), std::ios::binary);
    const std::string variables((std::istreambuf_iterator<char>(environment)), {});
    std::error_code error;
    const std::string program =
        std::filesystem::read_symlink(absl::StrCat("/proc/", pid, "/exe"), error).filename();
    if (program == "syncopate-train" &&
        absl::StrContains(variables, absl::StrCat("SYNCOPATE_RANK=", rank, std::string(1, '\0')))) {
      return pid;
    }
  }
  return -1;
}

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
  EXPECT_TRUE(WaitUntilNoneIsLeft(marker));

  const int64_t last = LastCheckpoint(run);
  ASSERT_GT(last, 0);
  const int64_t end = last + 2 * kEvery;
  Subprocess resumed(
      Train(kWorkers, {"--run", run, "--resume", "--iterations", absl::StrCat(end)}));
  ASSERT_EQ(resumed.Wait(), 0) << resumed.err();
  const auto summary = nlohmann::json::parse(resumed.out());
  EXPECT_EQ(summary.at("iterations"), end);
  EXPECT_EQ(summary.at("schedule"), "wfbp");  // as the run began

  const std::string straight = Run("straight");
  Subprocess whole(Train(kWorkers, Job(straight, end)));
  ASSERT_EQ(whole.Wait(), 0) << whole.err();
  for (int rank = 0; rank < kWorkers; ++rank) {
    EXPECT_TRUE(StateOf(run, end, rank) == StateOf(straight, end, rank)) << rank;
  }
  EXPECT_FALSE(StateOf(run, end, 0) == StateOf(run, end, 1));  // each has its own random numbers
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
        std::vector<std::string>{TRAIN_WORKER_BINARY, options},
        Subprocess::Options{.environment = {absl::StrCat("SYNCOPATE_JOB=", job),
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

  Subprocess more(Train(3, {"--run", run, "--resume"}));
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
