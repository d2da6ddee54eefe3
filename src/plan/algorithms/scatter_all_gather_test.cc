#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plan/collective/planner_testing.h"

namespace syncopate::plan::testing {
namespace {

TEST(ScatterAllGatherTest, Broadcast) {
  ProveRandomPlans(Collective::kBroadcast, PlannerOf(Collective::kBroadcast, "scatter-all-gather"),
                   [](const Plan& plan) {
                     EXPECT_LE(plan.proof.rounds, plan.size() - 1);
                     EXPECT_LE(plan.proof.sent_elements_max, 2 * plan.request.elements);
                   });
}

TEST(ScatterAllGatherTest, NobodySendsTwiceTheData) {
  for (int workers = 2; workers <= 20; ++workers) {
    const uint64_t elements = static_cast<uint64_t>(workers) * 64;
    const Plan plan = PlanAndProve(PlannerOf(Collective::kBroadcast, "scatter-all-gather"),
                                   FullRequest(Collective::kBroadcast, workers, elements));
    EXPECT_EQ(plan.proof.sent_elements_max, 2 * (workers - 1) * 64u);
    EXPECT_EQ(plan.proof.rounds, workers - 1);
    EXPECT_EQ(plan.Messages(), (workers - 1) + (workers - 1) * (workers - 1));
  }
}

}  // namespace
}  // namespace syncopate::plan::testing
