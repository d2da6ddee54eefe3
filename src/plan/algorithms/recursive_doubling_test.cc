#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plan/collective/planner_testing.h"
#include "plan/collective/shares.h"

namespace syncopate::plan::testing {
namespace {

TEST(RecursiveDoublingTest, AllReduce) {
  ProveRandomPlans(Collective::kAllReduce, PlannerOf(Collective::kAllReduce, "recursive-doubling"),
                   [](const Plan& plan) {
                     if (plan.request.elements == 0) return;
                     const int members = FloorPowerOfTwo(plan.size());
                     const int surplus = plan.size() - members;
                     // One round more to fold the surplus in and one to fold it out. With few
                     // surplus workers no chain of messages needs both.
                     EXPECT_LE(plan.proof.rounds, CeilLog2(members) + (surplus > 0 ? 2 : 0));
                     EXPECT_GE(plan.proof.rounds, CeilLog2(plan.size()));
                     EXPECT_EQ(plan.Messages(), members * CeilLog2(members) + 2 * surplus);
                     EXPECT_EQ(
                         plan.proof.sent_elements_max,
                         static_cast<uint64_t>(CeilLog2(plan.size())) * plan.request.elements);
                     EXPECT_EQ(plan.proof.sent_elements_total,
                               static_cast<uint64_t>(plan.Messages()) * plan.request.elements);
                   });
}

TEST(RecursiveDoublingTest, PowersOfTwoTakeLogRounds) {
  for (int workers : {2, 4, 8, 16, 32, 64}) {
    const Plan plan = PlanAndProve(PlannerOf(Collective::kAllReduce, "recursive-doubling"),
                                   FullRequest(Collective::kAllReduce, workers, 100));
    EXPECT_EQ(plan.proof.rounds, CeilLog2(workers));
    EXPECT_EQ(plan.proof.sent_elements_max, static_cast<uint64_t>(100 * CeilLog2(workers)));
  }
}

// The proof takes a + b for b + a; minimum and maximum of signed zeros do not.
TEST(RecursiveDoublingTest, BothPartnersHaveTheLowerOneOnTheLeft) {
  const Plan plan = PlanAndProve(PlannerOf(Collective::kAllReduce, "recursive-doubling"),
                                 FullRequest(Collective::kAllReduce, 2, 100));
  const auto kinds = [&](size_t worker) {
    std::vector<StepKind> seen;
    for (const Step& step : plan.StepsOf(worker)) seen.push_back(step.kind);
    return seen;
  };
  using enum StepKind;
  EXPECT_THAT(kinds(0), ::testing::UnorderedElementsAre(kCopy, kReceiveReduce, kSend));
  EXPECT_THAT(kinds(1), ::testing::UnorderedElementsAre(kCopy, kSend, kReceive, kReduce));
}

}  // namespace
}  // namespace syncopate::plan::testing
