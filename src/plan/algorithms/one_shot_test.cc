// The order of the steps of one-shot programs is a promise to the engine; here it is spelled out.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plan/collective/planner_testing.h"

namespace syncopate::plan::testing {
namespace {

using ::testing::ElementsAreArray;

Step Make(StepKind kind, Space space, int peer, std::vector<uint32_t> after) {
  Step step;
  step.kind = kind;
  step.space = space;
  step.peer = peer;
  step.after.assign(after.begin(), after.end());
  return step;
}

std::vector<Step> ExpectedSteps(const std::vector<int>& active, size_t k) {
  std::vector<Step> steps = {Make(StepKind::kCopy, Space::kScratch, -1, {})};
  for (size_t j = 0; j < active.size(); ++j) {
    if (j != k) steps.push_back(Make(StepKind::kSend, Space::kScratch, active[j], {0}));
  }
  uint32_t previous = 0;
  const auto add = [&](Step step) {
    previous = static_cast<uint32_t>(steps.size());
    steps.push_back(std::move(step));
  };
  if (k > 0) add(Make(StepKind::kReceive, Space::kData, active[0], {previous}));
  for (size_t j = 1; j < active.size(); ++j) {
    if (j == k) {
      Step own = Make(StepKind::kReduce, Space::kData, -1, {previous});
      own.source_space = Space::kScratch;
      add(own);
    } else {
      add(Make(StepKind::kReceiveReduce, Space::kData, active[j], {previous}));
    }
  }
  return steps;
}

TEST(OneShotTest, AllReduce) {
  ProveRandomPlans(
      Collective::kAllReduce, PlannerOf(Collective::kAllReduce, "one-shot"), [](const Plan& plan) {
        if (plan.size() == 1) return;
        EXPECT_EQ(plan.program.data_bounds, (std::vector<uint64_t>{0, plan.request.elements}));
        EXPECT_EQ(plan.program.scratch_bounds, plan.program.data_bounds);
        for (size_t k = 0; k < plan.request.active.size(); ++k) {
          EXPECT_THAT(plan.StepsOf(k), ElementsAreArray(ExpectedSteps(plan.request.active, k)));
        }
        EXPECT_EQ(plan.proof.rounds, 1);
        EXPECT_EQ(plan.proof.sent_elements_max, (plan.size() - 1) * plan.request.elements);
      });
}

}  // namespace
}  // namespace syncopate::plan::testing
