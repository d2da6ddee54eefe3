#include "gtest/gtest.h"
#include "plan/collective/machines_testing.h"
#include "plan/collective/planner_testing.h"

namespace syncopate::plan::testing {
namespace {

TEST(BlinkTest, AllReduce) {
  ProveRandomPlans(
      Collective::kAllReduce, PlannerOf(Collective::kAllReduce, "blink"), [](const Plan& plan) {
        const int machines = static_cast<int>(MachinesOf(plan.request, plan.options).size());
        EXPECT_LE(plan.proof.rounds, 2 + 2 * (machines - 1));
        ExpectLeastTraffic(plan);
      });
}

TEST(BlinkTest, AlongGivenTrees) {
  ProveRandomPlans(Collective::kAllReduce,
                   WithRandomLocalTrees(PlannerOf(Collective::kAllReduce, "blink")),
                   ExpectLeastTraffic);
}

TEST(BlinkTest, EqualMachinesShareTheWorkEvenly) {
  PlannerOptions options;
  options.levels = {{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9, 10, 11}}};
  const uint64_t elements = 64 * 12 * 5;
  const Plan plan = PlanAndProve(PlannerOf(Collective::kAllReduce, "blink"),
                                 FullRequest(Collective::kAllReduce, 12, elements), options);
  // Three quarters to the other roots, 4/3 of a quarter around the ring, three quarters back.
  EXPECT_EQ(plan.proof.sent_elements_max, elements * 3 / 4 + elements / 3 + elements * 3 / 4);
  EXPECT_EQ(plan.proof.rounds, 6);
}

// A member of a small machine holds several shares; that is the imbalance of this method.
TEST(BlinkTest, SmallMachinesCarryAsMuchBetweenMachinesAsLargeOnes) {
  PlannerOptions options;
  options.levels = {{{0, 1, 2, 3}, {4}}};
  const uint64_t elements = 64 * 8 * 10;
  const Plan plan = PlanAndProve(PlannerOf(Collective::kAllReduce, "blink"),
                                 FullRequest(Collective::kAllReduce, 5, elements), options);
  EXPECT_EQ(plan.proof.sent_elements_max, elements * 3 / 2 + elements / 4);
  uint64_t alone = 0;
  for (const Step& step : plan.program.steps[4]) {
    if (step.kind == StepKind::kSend) alone += plan.program.size(step);
  }
  EXPECT_EQ(alone, elements);
}

}  // namespace
}  // namespace syncopate::plan::testing
