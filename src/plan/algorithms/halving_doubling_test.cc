#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plan/collective/planner_testing.h"
#include "plan/collective/shares.h"

namespace syncopate::plan::testing {
namespace {

TEST(HalvingDoublingTest, AllReduce) {
  ProveRandomPlans(
      Collective::kAllReduce, PlannerOf(Collective::kAllReduce, "halving-doubling"),
      [](const Plan& plan) {
        const int members = FloorPowerOfTwo(plan.size());
        const uint64_t surplus = static_cast<uint64_t>(plan.size() - members);
        EXPECT_EQ(plan.proof.sent_elements_total,
                  (2 * (static_cast<uint64_t>(members) - 1) + 2 * surplus) * plan.request.elements);
        if (plan.request.elements < static_cast<uint64_t>(members))
          return;  // some shares are empty
        EXPECT_EQ(plan.proof.rounds, 2 * CeilLog2(members) + (surplus > 0 ? 2 : 0));
        EXPECT_EQ(plan.Messages(), 2 * members * CeilLog2(members) + 2 * static_cast<int>(surplus));
      });
}

TEST(HalvingDoublingTest, PowersOfTwoSendTheLeastThereIs) {
  for (int workers : {2, 4, 8, 16, 32}) {
    const uint64_t elements = 64 * 32;
    const Plan plan = PlanAndProve(PlannerOf(Collective::kAllReduce, "halving-doubling"),
                                   FullRequest(Collective::kAllReduce, workers, elements));
    EXPECT_EQ(plan.proof.rounds, 2 * CeilLog2(workers));
    EXPECT_EQ(plan.proof.sent_elements_max, 2 * elements * (workers - 1) / workers);
  }
}

TEST(HalvingDoublingTest, NeighboursExchangeTheMost) {
  const Plan plan = PlanAndProve(PlannerOf(Collective::kAllReduce, "halving-doubling"),
                                 FullRequest(Collective::kAllReduce, 8, 800));
  for (const Step& step : plan.program.steps[0]) {
    EXPECT_EQ(step.count, step.peer == 1 ? 4u : step.peer == 2 ? 2u : 1u);
  }
}

}  // namespace
}  // namespace syncopate::plan::testing
