#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plan/collective/planner_testing.h"

namespace syncopate::plan::testing {
namespace {

TEST(DisseminationTest, Barrier) {
  ProveRandomPlans(Collective::kBarrier, PlannerOf(Collective::kBarrier, "dissemination"),
                   [](const Plan& plan) {
                     EXPECT_EQ(plan.program.data_bounds, (std::vector<uint64_t>{0, 0}));
                     EXPECT_EQ(plan.proof.rounds, CeilLog2(plan.size()));
                     EXPECT_EQ(plan.Messages(), plan.size() * CeilLog2(plan.size()));
                     EXPECT_EQ(plan.proof.sent_elements_total, 0u);
                   });
}

TEST(DisseminationTest, ARoundLessIsNoBarrier) {
  Program program = *PlannerOf(Collective::kBarrier, "dissemination")(
      FullRequest(Collective::kBarrier, 5, 0), {});
  for (std::vector<Step>& steps : program.steps) steps.resize(steps.size() - 2);
  EXPECT_EQ(Validate(program), absl::OkStatus());
  EXPECT_EQ(ProveProgram(program).status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace syncopate::plan::testing
