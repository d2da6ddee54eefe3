// The parts of a live campaign that need no cluster: what is planned, how it is judged, and what the
// file keeps of it.
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "live/outcome.h"
#include "live/plan.h"
#include "live/results.h"
#include "live/said.h"
#include "live/story.h"
#include "live/training.h"

namespace syncopate::live {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

TEST(LivePlanTest, TheSameSeedIsTheSamePlan) {
  for (uint64_t number = 0; number < 50; ++number) {
    const JobPlan a = MakeJob(3, number), b = MakeJob(3, number);
    EXPECT_EQ(Describe(a), Describe(b));
    ASSERT_EQ(a.cases.size(), b.cases.size());
    for (size_t i = 0; i < a.cases.size(); ++i) {
      EXPECT_EQ(Describe(a.cases[i]), Describe(b.cases[i]));
    }
  }
}

TEST(LivePlanTest, EveryCaseCanBeSurvived) {
  std::set<std::string> kinds, shapes;
  for (uint64_t number = 0; number < 500; ++number) {
    const JobPlan job = MakeJob(1, number);
    shapes.insert(absl::StrCat(job.wire, job.slots, Name(job.operation)));
    ASSERT_FALSE(job.cases.empty());
    std::set<int> lost;
    for (const Case& each : job.cases) {
      kinds.insert(Name(each.kind));
      const size_t alive = static_cast<size_t>(job.workers()) - lost.size();
      const std::vector<int> victims = each.Victims();
      ASSERT_FALSE(victims.empty());
      for (const int victim : victims) {
        EXPECT_GE(victim, 0);
        EXPECT_LT(victim, job.workers());
        EXPECT_TRUE(lost.insert(victim).second) << "it was lost before: " << Describe(each);
      }
      const bool certain = std::all_of(each.blows.begin(), each.blows.end(),
                                       [](const Blow& blow) { return blow.fault == Fault::kKill; });
      EXPECT_GT(alive, victims.size());
      EXPECT_TRUE(certain || 2 * (alive - victims.size()) > alive) << Describe(each);
    }
  }
  EXPECT_EQ(kinds.size(), static_cast<size_t>(kKinds));
  EXPECT_EQ(shapes.size(), 16u) << "two wires, one or two workers a host, four operations";
}

// A job of eight workers that all-reduces, whose rank 3 is stopped, as the others tell it.
class JudgeTest : public ::testing::Test {
 protected:
  JudgeTest() {
    job_.cases = {
        {.kind = Kind::kStop, .blows = {{.fault = Fault::kStop, .victims = {3}}}},
    };
    for (const int rank : survivors_) Tell(rank, 3, Data::kOld);
  }

  void Tell(int rank, int suspect, Data data, uint64_t rounds = 7) {
    Account& account = story_->accounts[rank];
    account.loss[0] = {.suspect = suspect,
                       .code = static_cast<int>(absl::StatusCode::kUnavailable),
                       .noticed_ns = 4'000'000'000,
                       .rounds = rounds,
                       .data = data};
    account.losses = 1;
  }
  std::vector<std::string> Failures() const { return Judged().failures; }
  Outcome Judged() const { return Judge(job_, 0, survivors_, 0, 500'000'000, *story_); }

  JobPlan job_;
  std::vector<int> survivors_ = {0, 1, 2, 4, 5, 6, 7};
  std::unique_ptr<Story> story_ = std::make_unique<Story>();
};

TEST_F(JudgeTest, AgreementHasNoFailure) {
  const Outcome outcome = Judged();
  EXPECT_THAT(outcome.failures, IsEmpty());
  EXPECT_EQ(outcome.noticed_ms, 3500);
  EXPECT_EQ(outcome.data, "old");
  EXPECT_EQ(outcome.workers, 8);
}

TEST_F(JudgeTest, ALiveWorkerThatIsSuspectedShows) {
  for (const int rank : survivors_) Tell(rank, 5, Data::kOld);
  EXPECT_THAT(Failures(), ::testing::Each(StartsWith("live worker suspected: rank ")));
  EXPECT_EQ(Failures().size(), survivors_.size());
}

TEST_F(JudgeTest, ALiveWorkerThatIsOutShows) {
  story_->accounts[6].end = End::kOut;
  EXPECT_THAT(Failures(), ElementsAre(StartsWith("live worker suspected: rank 6 ended")));
}

TEST_F(JudgeTest, DifferingSuspectsShow) {
  job_.cases[0].blows.push_back({.fault = Fault::kStop, .victims = {7}});
  survivors_ = {0, 1, 2, 4, 5, 6};
  for (const int rank : survivors_) {
    Tell(rank, rank == 4 ? 7 : 3, Data::kOld);
    story_->accounts[rank].loss[1] = story_->accounts[rank].loss[0];
    story_->accounts[rank].loss[1].suspect = rank == 4 ? 3 : 7;
    story_->accounts[rank].losses = 2;
  }
  EXPECT_THAT(Failures(),
              ElementsAre(StartsWith("differing suspects"), StartsWith("differing suspects")));
}

TEST_F(JudgeTest, OldAndNewMustNotMix) {
  Tell(4, 3, Data::kNew);
  EXPECT_THAT(Failures(), ElementsAre(StartsWith("wrong element: some have the old")));
  Tell(4, 3, Data::kOld, 8);
  EXPECT_THAT(Failures(), ElementsAre(StartsWith("wrong element: some have the old")));
  Tell(4, 3, Data::kWrong);
  EXPECT_THAT(Failures(), ::testing::Contains(StartsWith("wrong element: neither")));
}

TEST_F(JudgeTest, WhatABroadcastLeavesIsNotPromised) {
  job_.operation = Operation::kBroadcast;
  for (const int rank : survivors_) Tell(rank, 3, Data::kUnspecified, static_cast<uint64_t>(rank));
  EXPECT_THAT(Failures(), IsEmpty());
}

TEST_F(JudgeTest, TooLateShowsUnlessASentryWasHeldUp) {
  story_->accounts[2].loss[0].noticed_ns = 5'600'000'000;
  Outcome outcome = Judged();
  EXPECT_EQ(outcome.noticed_ms, 5100);
  outcome.pause_ms = 501;
  JudgeTime(job_.cases[0], outcome);
  EXPECT_THAT(outcome.failures, IsEmpty());
  outcome.pause_ms = 500;
  JudgeTime(job_.cases[0], outcome);
  EXPECT_THAT(outcome.failures, ElementsAre(StartsWith("late: noticed after 5100 ms")));
}

TEST_F(JudgeTest, ADeathIsNoticedWithinASecond) {
  Outcome outcome = Judged();
  JudgeTime(job_.cases[0], outcome);
  EXPECT_THAT(outcome.failures, IsEmpty()) << "3.5 s are quick enough for one that is stopped";
  job_.cases[0].blows[0].fault = Fault::kKill;
  JudgeTime(job_.cases[0], outcome);
  EXPECT_THAT(outcome.failures, ElementsAre(StartsWith("late: noticed after 3500 ms")));
}

TEST_F(JudgeTest, AnotherErrorShows) {
  story_->accounts[1].loss[0].code = static_cast<int>(absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(Failures(), ElementsAre(StartsWith("other: not the error of a lost worker")));
}

TEST(LiveTrainingTest, WhatARankSaysIsRead) {
  EXPECT_EQ(SuspectIn("syncopate train: rank 2: all-reduce 5 of group 0-7: worker 13 died (its "
                      "process ended)"),
            13);
  EXPECT_EQ(SuspectIn("syncopate train: rank 2: this worker is out of the job"), std::nullopt);
  EXPECT_EQ(PauseMsIn("[rank 3] info: this worker's sentry was held up for 620 ms\n"
                      "[rank 3] info: this worker's sentry was held up for 510 ms\n"),
            620);
  EXPECT_EQ(PauseMsIn("nothing"), 0);
}

class LiveResultsTest : public ::testing::Test {
 protected:
  ~LiveResultsTest() override { std::filesystem::remove(path_); }

  static Outcome Sample(int number) {
    return {.job = 12,
            .number = number,
            .kind = "stop",
            .wire = "ucx",
            .slots = 2,
            .operation = "forest",
            .workers = 16,
            .noticed_ms = 3456,
            .pause_ms = 12,
            .data = "new",
            .times = {},
            .failures = {}};
  }

  const std::string path_ = absl::StrCat(::testing::TempDir(), "live-results-", getpid());
};

TEST_F(LiveResultsTest, OneThatWasEndedGoesOn) {
  absl::StatusOr<Results> first = Results::Open(path_, 5);
  ASSERT_TRUE(first.ok()) << first.status();
  Outcome failed = Sample(1);
  failed.failures = {"hang: \"rank 2\"\n"};
  ASSERT_TRUE(first->Add({Sample(0), failed}).ok());
  absl::StatusOr<Results> second = Results::Open(path_, 5);
  ASSERT_TRUE(second.ok()) << second.status();
  ASSERT_EQ(second->outcomes().size(), 2u);
  EXPECT_EQ(ToJson(second->outcomes()[0]), ToJson(Sample(0)));
  EXPECT_EQ(ToJson(second->outcomes()[1]), ToJson(failed));
}

TEST_F(LiveResultsTest, AnotherCampaignIsRefused) {
  ASSERT_TRUE(Results::Open(path_, 5).ok());
  EXPECT_THAT(Results::Open(path_, 6).status().ToString(), HasSubstr("seed 6"));
}

TEST_F(LiveResultsTest, ALineThatIsNoOutcomeIsNamed) {
  ASSERT_TRUE(Results::Open(path_, 5)->Add({Sample(0)}).ok());
  std::filesystem::resize_file(path_, std::filesystem::file_size(path_) - 5);
  EXPECT_THAT(Results::Open(path_, 5).status().ToString(), HasSubstr(path_ + ":2"));
}

TEST_F(LiveResultsTest, TheTableCountsByKind) {
  Outcome held_up = Sample(1), failed = Sample(2);
  held_up.pause_ms = 501;
  held_up.noticed_ms = 9000;
  failed.data = "old";
  failed.failures = {"late: x"};
  const std::string table = Table({Sample(0), held_up, failed});
  EXPECT_THAT(table, HasSubstr("| stop | 3 | 1 | 2 | 3.46 s | 3.46 s | 1 | 1 |\n"));
  EXPECT_THAT(table, HasSubstr("ucx with 2 a host: 3"));
  EXPECT_THAT(table, HasSubstr("failures: late: 1"));
}

TEST_F(LiveResultsTest, TooManyThatWereHeldUpAreAFailure) {
  std::vector<Outcome> outcomes;
  for (int number = 0; number < 99; ++number) outcomes.push_back(Sample(number));
  const auto hold_up = [&](size_t case_number) { outcomes[case_number].pause_ms = 501; };
  for (size_t i = 0; i < 3; ++i) hold_up(i);
  EXPECT_TRUE(CheckHeldUp(outcomes).ok()) << "these are too few to say";
  for (int number = 99; number < 150; ++number) outcomes.push_back(Sample(number));
  EXPECT_TRUE(CheckHeldUp(outcomes).ok()) << "2 %";
  hold_up(3);
  EXPECT_THAT(CheckHeldUp(outcomes).ToString(), HasSubstr("in 4 of 150 cases"));
}

}  // namespace
}  // namespace syncopate::live
