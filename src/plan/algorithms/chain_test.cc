#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plan/collective/planner_testing.h"

namespace syncopate::plan::testing {
namespace {

void ExpectChain(const Plan& plan) {
  EXPECT_EQ(plan.proof.rounds, plan.request.elements == 0 ? 0 : plan.size() - 1);
  EXPECT_EQ(plan.proof.sent_elements_total, (plan.size() - 1) * plan.request.elements);
  EXPECT_EQ(plan.proof.sent_elements_max, plan.size() > 1 ? plan.request.elements : 0);
  EXPECT_LE(plan.Messages(), (plan.size() - 1) * plan.options.pieces);
}

TEST(ChainTest, Broadcast) {
  ProveRandomPlans(Collective::kBroadcast, PlannerOf(Collective::kBroadcast, "chain"), ExpectChain);
}

TEST(ChainTest, Reduce) {
  ProveRandomPlans(Collective::kReduce, PlannerOf(Collective::kReduce, "chain"), ExpectChain);
}

TEST(ChainTest, GoesInOrderFromTheRoot) {
  CollectiveRequest request = FullRequest(Collective::kBroadcast, 4, 100);
  request.root = 2;
  PlannerOptions options;
  options.order = {0, 2, 1, 3};
  const Plan plan = PlanAndProve(PlannerOf(Collective::kBroadcast, "chain"), request, options);
  EXPECT_EQ(plan.program.steps[2].at(0).peer, 1);
  EXPECT_EQ(plan.program.steps[1].at(1).peer, 3);
  EXPECT_EQ(plan.program.steps[3].at(1).peer, 0);
  EXPECT_EQ(plan.program.steps[0].size(), 1u);
}

}  // namespace
}  // namespace syncopate::plan::testing
