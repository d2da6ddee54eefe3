// Training without lockstep as a user runs it: everything is killed at random moments, launcher included, and
// `--resume` goes on until the job has come to its end. One job also loses a worker alone, and goes on without
// it.
//
// More by hand:
//
//   SYNCOPATE_TEST_TRAIN_KILLS=50 build/release/tests/train_loose_resume_test
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>

#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/parse.h"
#include "base/random.h"
#include "base/temporary_folder_testing.h"
#include "base/unique_fd.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "subprocess.h"

namespace syncopate::testing {
namespace {

using ::testing::ElementsAre;
using Json = nlohmann::json;

constexpr int kSamples = 4000, kEpochs = 2, kBatch = 64;

Json ReadJson(const std::string& path) {
  const std::string text = ReadFile(path, 1 << 20).value_or("");
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  return json.is_object() ? json : Json::object();
}

class TrainLooseResumeTest : public ::testing::Test {
 protected:
  std::vector<std::string> Begin(const std::string& strategy, const std::string& mode) const {
    return {SYNCOPATE_BINARY,
            "train",
            "--model",
            "mlp",
            "--data",
            "synthetic",
            "-n",
            "4",
            "--strategy",
            strategy,
            "--data-mode",
            mode,
            "--run",
            run_,
            "--batch",
            absl::StrCat(kBatch),
            "--epochs",
            absl::StrCat(kEpochs),
            "--lr",
            "0.02",
            "--slow",
            "1:1",
            "--threads",
            "1",
            "--checkpoint-every",
            "10",
            "--report-every",
            "5",
            "--json",
            "--overwrite"};
  }
  std::vector<std::string> GoOn() const {
    return {SYNCOPATE_BINARY, "train", "--run", run_, "--resume", "--json"};
  }
  bool HasSet() const { return !ReadJson(run_ + "/checkpoint.json").empty(); }
  int64_t Set() const { return ReadJson(run_ + "/checkpoint.json").value("iteration", int64_t{0}); }
  static void WaitUntil(const std::function<bool()>& condition) {
    const int64_t deadline_ns = MonotonicClock().NowNs() + 3 * kDeadlineNs;  // jobs start in it
    while (!condition() && MonotonicClock().NowNs() < deadline_ns) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }
  static bool HasEnded(const Subprocess& job) {
    siginfo_t info = {};
    return waitid(P_PID, static_cast<id_t>(job.pid()), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid != 0;
  }
  // Processes that are ending hold the run's lock until they have ended.
  bool IsFree() const {
    const UniqueFd lock(open((run_ + "/run.lock").c_str(), O_RDWR | O_CLOEXEC));
    return !lock.ok() || flock(lock.get(), LOCK_EX | LOCK_NB) == 0;
  }
  void KillAll(const std::string& marker) const {
    for (const pid_t pid : MarkedProcesses(marker)) kill(pid, SIGKILL);
    EXPECT_TRUE(WaitUntilNoneIsLeft(marker));
    WaitUntil([this] { return IsFree(); });
  }

  const TemporaryFolder folder_;
  const std::string run_ = folder_.path() + "/run";
};

TEST_F(TrainLooseResumeTest, GoesOnAfterEverythingWasKilledAtRandomMoments) {
  int kills = 3;
  if (const char* text = std::getenv("SYNCOPATE_TEST_TRAIN_KILLS"); text != nullptr) {
    ASSERT_TRUE(absl::SimpleAtoi(text, &kills));
  }
  Random random(17);
  int done = 0, jobs = 0;
  for (; done < kills && !HasFailure(); ++jobs) {
    std::filesystem::remove_all(run_);  // the sets of the job before
    const bool epochs = jobs % 2 == 0;
    const int64_t last_set =
        epochs ? (kSamples * kEpochs + kBatch - 1) / kBatch : kEpochs * (kSamples / kBatch);
    std::vector<std::string> command =
        Begin(epochs ? "sample-asked" : "sample-groups", epochs ? "epochs" : "independent");
    // Each part but the last is killed a moment after it has made some sets more.
    for (int part = 0; part < 3 && !HasFailure(); ++part) {
      const std::string marker = UniqueMarker();
      Subprocess job(command, {.environment = {absl::StrCat("SYNCOPATE_TEST_MARKER=", marker)}});
      const int64_t before = part == 0 ? 0 : Set();
      WaitUntil([&] { return Set() > before || HasEnded(job); });
      if (before == last_set) {  // it was killed when only its summary was left to do
        EXPECT_EQ(job.Wait(), 0) << job.err();
        break;
      }
      ASSERT_GT(Set(), before) << job.err();
      std::this_thread::sleep_for(std::chrono::microseconds(random.Below(300'000)));
      KillAll(marker);
      if (job.Wait() == 0) break;  // it was quicker
      ++done;
      command = GoOn();
    }
    Subprocess last(GoOn());
    ASSERT_EQ(last.Wait(), 0) << last.err();
    const Json summary = ReadJson(run_ + "/summary.json");
    ASSERT_TRUE(summary.contains("accuracy"));
    EXPECT_GT(summary.at("accuracy"), 0.5);
    if (epochs) {
      EXPECT_EQ(Set(), (kSamples * kEpochs + kBatch - 1) / kBatch);
      EXPECT_TRUE(summary.contains("samples_repeated"));
    }
  }
  EXPECT_GE(done, kills);
  std::printf("%d jobs went on after %d kills of everything\n", jobs, done);
}

TEST_F(TrainLooseResumeTest, GoesOnWithTheWorkersThatAreLeft) {
  const std::string marker = UniqueMarker();
  {
    Subprocess job(Begin("sample-asked", "epochs"),
                   {.environment = {absl::StrCat("SYNCOPATE_TEST_MARKER=", marker)}});
    WaitUntil([&] { return HasSet(); });
    ASSERT_TRUE(HasSet()) << "the job did not come so far";  // a loss at the start ends it
    const pid_t victim = WorkerOf(marker, 2);
    ASSERT_GT(victim, 0) << job.err();
    ASSERT_EQ(kill(victim, SIGKILL), 0);
    WaitUntil([&] { return ReadJson(run_ + "/checkpoint.json").value("workers", 0) == 3; });
    KillAll(marker);
    job.Wait();
  }
  const Json note = ReadJson(run_ + "/checkpoint.json");
  ASSERT_EQ(note.value("workers", 0), 3) << note;
  const bool left_over = note.at("iteration") < (kSamples * kEpochs) / kBatch;
  if (left_over) {
    EXPECT_THAT(note.at("ranks").get<std::vector<int>>(), ElementsAre(0, 1, 3));
  }
  Subprocess rest(GoOn());
  EXPECT_EQ(rest.Wait(), 0) << rest.err();
  if (left_over) {  // else the job may have written its summary before it was killed
    EXPECT_EQ(ReadJson(run_ + "/summary.json").value("workers", 0), 3);
  }
}

}  // namespace
}  // namespace syncopate::testing
