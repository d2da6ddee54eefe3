#include "adapt/plan_trial.h"

#include <functional>
#include <optional>
#include <utility>

#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncopate::adapt {
namespace {

using ::testing::HasSubstr;
using Plan = PlanTrial::Plan;

// A job in which a change is in force `delay` iterations after it was wanted.
struct TriedJob {
  int delay = 2;
  // The seconds of an iteration with a plan; `change`: it is the first one with it.
  std::function<std::optional<double>(Plan plan, bool change)> seconds;

  Plan in_force = Plan::kOld;
  int iterations = 0;
  int with_new = 0;
  int waited = 0;      // for a change
  bool fresh = false;  // this iteration is the first with its plan

  // One iteration.
  void Step(PlanTrial& trial) {
    if (trial.wanted() != in_force && waited++ >= delay) {
      in_force = trial.wanted();
      waited = 0;
      fresh = true;
    }
    ++iterations;
    with_new += in_force == Plan::kNew ? 1 : 0;
    trial.Iteration(in_force, seconds(in_force, std::exchange(fresh, false)));
  }
  void Run(PlanTrial& trial) {
    while (!trial.over() && iterations < 1000) Step(trial);
  }
};

TEST(PlanTrialTest, ABetterPlanStays) {
  for (const int delay : {0, 1, 5}) {
    PlanTrial trial;
    TriedJob job{.delay = delay, .seconds = [](Plan plan, bool change) {
                   return (plan == Plan::kNew ? 0.08 : 0.1) * (change ? 10 : 1);
                 }};
    job.Run(trial);
    ASSERT_TRUE(trial.over());
    EXPECT_EQ(trial.wanted(), Plan::kNew);
    EXPECT_EQ(trial.outcome().new_seconds, 0.08);
    EXPECT_EQ(trial.outcome().old_seconds, 0.1);
    EXPECT_EQ(trial.outcome().new_iterations, 2 * PlanTrial::kTurn);
    EXPECT_EQ(trial.outcome().old_iterations, 2 * PlanTrial::kTurn);
    EXPECT_THAT(trial.outcome().why, HasSubstr("80 ms an iteration instead of 100 ms: it stays"));
  }
}

TEST(PlanTrialTest, AWorsePlanGoes) {
  PlanTrial trial;
  TriedJob job{.seconds = [](Plan plan, bool) { return plan == Plan::kNew ? 0.11 : 0.1; }};
  job.Run(trial);
  ASSERT_TRUE(trial.over());
  EXPECT_EQ(trial.wanted(), Plan::kOld);
  EXPECT_THAT(trial.outcome().why, HasSubstr("the one before stays"));
}

TEST(PlanTrialTest, APlanThatIsAlikeIsNotWorthAChange) {
  PlanTrial trial;
  TriedJob job{.seconds = [](Plan plan, bool) { return plan == Plan::kNew ? 0.099 : 0.1; }};
  job.Run(trial);
  EXPECT_EQ(trial.wanted(), Plan::kOld);
}

// A plan that takes twice as long or more has one iteration a turn that counts, not three.
TEST(PlanTrialTest, AMuchWorsePlanIsLeftAtOnce) {
  const auto tried = [](double seconds) {
    PlanTrial trial;
    TriedJob job{.delay = 0,
                 .seconds = [=](Plan plan, bool) { return plan == Plan::kNew ? seconds : 0.1; }};
    job.Run(trial);
    EXPECT_EQ(trial.wanted(), Plan::kOld);
    return job.with_new;
  };
  EXPECT_EQ(tried(0.19), 1 + 2 * (1 + PlanTrial::kTurn));
  EXPECT_EQ(tried(0.2), 1 + 2 * (1 + 1));
  EXPECT_EQ(tried(9), 1 + 2 * (1 + 1));
}

TEST(PlanTrialTest, SingleSlowIterationsDecideNothing) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    for (const double factor : {0.8, 1.25}) {
      PlanTrial trial;
      int of_turn = 0;
      TriedJob job{.seconds = [&](Plan plan, bool) {
        // One iteration in seven is slow, whichever plan it has; all have noise of 8 %.
        const double noise = 0.92 + 0.16 * random.Unit();
        const double slow = ++of_turn % 7 == 0 ? 1.9 : 1;
        return (plan == Plan::kNew ? factor : 1) * 0.1 * noise * slow;
      }};
      job.Run(trial);
      EXPECT_EQ(trial.wanted(), factor < 1 ? Plan::kNew : Plan::kOld);
    }
  }
}

// The network becomes four times as slow in the middle: both plans have turns after that as before it.
TEST(PlanTrialTest, AChangeBetweenTurnsMeetsBothPlans) {
  PlanTrial trial;
  TriedJob job;
  job.delay = 0;
  job.seconds = [&](Plan plan, bool) {
    const double slower = job.iterations > 4 + PlanTrial::kUsual + 2 * PlanTrial::kTurn ? 4 : 1;
    return slower * (plan == Plan::kNew ? 0.12 : 0.1);
  };
  job.Run(trial);
  EXPECT_EQ(trial.wanted(), Plan::kOld);
}

TEST(PlanTrialTest, IterationsThatSomethingElseTookPartInDoNotCount) {
  PlanTrial trial;
  int number = 0;
  TriedJob job{.seconds = [&](Plan plan, bool) -> std::optional<double> {
    if (++number % 2 == 0) return std::nullopt;
    return plan == Plan::kNew ? 0.08 : 0.1;
  }};
  job.Run(trial);
  EXPECT_EQ(trial.wanted(), Plan::kNew);
  EXPECT_EQ(trial.outcome().old_iterations, 2 * PlanTrial::kTurn);
}

TEST(PlanTrialTest, ALossInMidTrialLeavesTheOldPlan) {
  for (int after = 0; after < 40; ++after) {
    PlanTrial trial;
    TriedJob job{.delay = 1,
                 .seconds = [](Plan plan, bool) { return plan == Plan::kNew ? 0.05 : 0.1; }};
    while (!trial.over() && job.iterations < after) job.Step(trial);
    if (trial.over()) continue;
    trial.Stop("worker 2 is lost");
    EXPECT_TRUE(trial.over());
    EXPECT_EQ(trial.wanted(), Plan::kOld);
    EXPECT_EQ(trial.outcome().why, "worker 2 is lost: the one before stays");
    // What still comes with the new plan changes nothing.
    for (int i = 0; i < 50; ++i) trial.Iteration(Plan::kNew, 0.01);
    EXPECT_EQ(trial.wanted(), Plan::kOld);
  }
}

TEST(PlanTrialTest, AChangeThatNeverComesEndsIt) {
  PlanTrial trial;
  for (int i = 0; i < PlanTrial::kChangeMost; ++i) trial.Iteration(Plan::kOld, 0.1);
  EXPECT_FALSE(trial.over());
  trial.Iteration(Plan::kOld, 0.1);
  EXPECT_TRUE(trial.over());
  EXPECT_EQ(trial.wanted(), Plan::kOld);
}

}  // namespace
}  // namespace syncopate::adapt
