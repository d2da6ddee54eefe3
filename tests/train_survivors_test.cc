// Training without lockstep as a user runs it: workers of different speed, and one that is killed in
// the middle. The job ends well, and what it leaves is whole, whoever the victim was.
#include <signal.h>

#include <fstream>
#include <functional>
#include <string>
#include <thread>
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

using ::testing::HasSubstr;
using Json = nlohmann::json;

constexpr int kWorkers = 4;
constexpr int64_t kIterations = 240;

struct Case {
  const char* name;
  const char* strategy;
  int victim;
  int first_writer;  // the first of the host order
  const char* evaluate;
  int writer;  // that is left
};

class SurvivorsTest : public ::testing::TestWithParam<Case> {
 protected:
  std::vector<std::string> Command() const {
    return {SYNCOPATE_BINARY,
            "train",
            "--model",
            "mlp",
            "--data",
            "synthetic",
            "-n",
            absl::StrCat(kWorkers),
            "--strategy",
            GetParam().strategy,
            "--run",
            run_,
            "--batch",
            "64",
            "--iterations",
            absl::StrCat(kIterations),
            "--lr",
            "0.02",
            "--slow",
            "1:2",
            "--threads",
            "1",
            "--evaluate",
            GetParam().evaluate,
            "--evaluate-every",
            "60",
            "--report-every",
            "5",
            "--json"};
  }
  std::vector<Json> Metrics(const std::string& file, const std::string& kind) const {
    std::vector<Json> lines;
    const std::string text = ReadFile(absl::StrCat(run_, "/", file), 16 << 20).value_or("");
    for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
      const Json json = Json::parse(line.begin(), line.end(), nullptr, false);
      if (json.is_object() && json.value("kind", "") == kind) lines.push_back(json);
    }
    return lines;
  }

  const TemporaryFolder folder_;
  const std::string run_ = folder_.path() + "/run";
};

TEST_P(SurvivorsTest, TheJobEndsWellWithoutAKilledWorker) {
  const Case& test = GetParam();
  const std::string marker = UniqueMarker();
  Subprocess job(Command(), {.environment = {absl::StrCat("SYNCOPATE_TEST_MARKER=", marker),
                                             "SYNCOPATE_PROGRESS=1s"}});
  // In the middle: it has written some lines, and has some to write.
  constexpr size_t kLines = 8;
  const int64_t deadline_ns = MonotonicClock().NowNs() + kDeadlineNs;
  while (Metrics("metrics.jsonl", "train").size() < kLines &&
         MonotonicClock().NowNs() < deadline_ns) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  ASSERT_GE(Metrics("metrics.jsonl", "train").size(), kLines) << job.err();
  const pid_t victim = WorkerOf(marker, test.victim);
  ASSERT_GT(victim, 0) << "it has ended already";
  ASSERT_EQ(kill(victim, SIGKILL), 0);
  EXPECT_EQ(job.Wait(), 0) << job.err();
  EXPECT_TRUE(WaitUntilNoneIsLeft(marker));
  EXPECT_THAT(job.err(), HasSubstr(absl::StrCat("rank ", test.victim)));

  // Only the worker that writes says how far the job is: nobody else still tells that it starts.
  const size_t first_line = job.err().find("so far: iteration");
  EXPECT_EQ(job.err().find("so far: starting", first_line), std::string::npos) << job.err();

  // One object on standard output, and the same in the folder.
  ASSERT_TRUE(Json::accept(job.out())) << job.out();
  const Json summary = Json::parse(job.out());
  const Json written = Json::parse(ReadFile(run_ + "/summary.json", 1 << 20).value_or(""));
  EXPECT_EQ(summary.at("accuracy"), written.at("accuracy"));
  EXPECT_EQ(summary.at("workers"), kWorkers);
  EXPECT_GT(summary.at("bytes_sent"), 0);
  EXPECT_GT(summary.at("iteration_ms_p50"), 0);
  EXPECT_GT(summary.at("accuracy"), 0.5);
  EXPECT_GE(summary.at("iterations"), kIterations);

  // The metrics say who was lost, and go on: with the next writer if the victim was the writer.
  const std::string last = test.victim == test.first_writer
                               ? absl::StrCat("metrics-", test.writer, ".jsonl")
                               : "metrics.jsonl";
  const std::vector<Json> events = Metrics(last, "event");
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events[0].at("text"), absl::StrCat("rank ", test.victim, " is lost"));
  EXPECT_FALSE(Metrics(last, "train").empty());
  EXPECT_FALSE(Metrics(last, "evaluate").empty());

  Subprocess report({SYNCOPATE_BINARY, "report", run_, "--json"});
  ASSERT_EQ(report.Wait(), 0) << report.err();
  EXPECT_TRUE(std::ifstream(run_ + "/model.pt").good());
  std::printf("%s: accuracy %.4f, %.1f s, %d iterations of the job, cores busy %.2f\n", test.name,
              summary.at("accuracy").get<double>(), summary.at("seconds").get<double>(),
              summary.at("iterations").get<int>(), summary.value("cores_busy", 0.0));
}

INSTANTIATE_TEST_SUITE_P(
    Strategies, SurvivorsTest,
    // Without rank 2 this strategy would leave rank 3 to itself, and the mean of the others and it is no model.
    ::testing::Values(Case{"GroupsLoseAWorker", "sample-groups", 3, 0, "beside", 0},
                      Case{"GroupsLoseTheServiceHost", "sample-groups", 0, 0, "beside", 1},
                      Case{"GroupsEvaluatedAfter", "sample-groups", 3, 0, "after", 0},
                      Case{"ServerLosesAWorker", "sample-server", 2, 1, "beside", 1},
                      Case{"ServerLosesTheServiceHost", "sample-server", 1, 1, "beside", 2}),
    [](const auto& group) { return group.param.name; });

TEST(ServerRanksTest, AServerThatIsToHostServicesIsRefusedOnce) {
  const TemporaryFolder folder;
  const std::string run = folder.path() + "/run";
  Subprocess job({SYNCOPATE_BINARY, "train", "--model", "mlp", "--data", "synthetic", "-n", "3",
                  "--strategy", "sample-server", "--run", run},
                 {.environment = {"SYNCOPATE_SERVICE_RANKS=2,0"}});
  EXPECT_EQ(job.Wait(), 2) << job.err();
  EXPECT_EQ(job.err(),
            "syncopate train: --strategy sample-server: SYNCOPATE_SERVICE_RANKS: rank 0 is a "
            "server, which hosts no services; give ranks of the job, first choice first, such as "
            "4,0-3, or leave it out\n");
  EXPECT_FALSE(std::ifstream(run + "/config.json").good());
}

// Nobody else could host them.
TEST(ServerRanksTest, AServerAloneHostsItsServices) {
  const TemporaryFolder folder;
  Subprocess job({SYNCOPATE_BINARY, "train", "--model", "mlp", "--data", "synthetic", "-n", "1",
                  "--strategy", "sample-server", "--iterations", "5", "--threads", "1", "--run",
                  folder.path() + "/run"});
  EXPECT_EQ(job.Wait(), 0) << job.err();
}

}  // namespace
}  // namespace syncopate::testing
