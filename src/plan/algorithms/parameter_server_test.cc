#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plan/collective/planner_testing.h"

namespace syncopate::plan::testing {
namespace {

TEST(ParameterServerTest, AllReduce) {
  ProveRandomPlans(Collective::kAllReduce, PlannerOf(Collective::kAllReduce, "parameter-server"),
                   [](const Plan& plan) {
                     if (plan.size() == 1) return;
                     EXPECT_EQ(plan.proof.rounds, plan.request.elements == 0 ? 0 : 2);
                     // Every active worker pushes and pulls everything, except its own share if it
                     // serves.
                     const uint64_t elements = plan.request.elements;
                     EXPECT_LE(plan.proof.sent_elements_total, 2 * plan.size() * elements);
                     EXPECT_GE(plan.proof.sent_elements_total, 2 * (plan.size() - 1) * elements);
                     EXPECT_LE(plan.program.scratch_elements(), elements);
                   });
}

TEST(ParameterServerTest, OnlyServersAreSentTo) {
  CollectiveRequest request = FullRequest(Collective::kAllReduce, 6, 600);
  request.active = {0, 1, 2, 3};
  PlannerOptions options;
  options.servers = {4, 1};
  const Plan plan =
      PlanAndProve(PlannerOf(Collective::kAllReduce, "parameter-server"), request, options);
  for (int rank : {0, 2, 3}) {
    EXPECT_EQ(plan.MessagesFrom(static_cast<size_t>(rank)), 2);
    for (const Step& step : plan.program.steps[static_cast<size_t>(rank)]) {
      EXPECT_TRUE(step.peer == 4 || step.peer == 1);
    }
  }
  EXPECT_TRUE(plan.program.steps[5].empty());
  // The inactive server adds in scratch, which has room for its share alone.
  EXPECT_EQ(plan.program.scratch_elements(), 320u);
  for (const Step& step : plan.program.steps[4]) EXPECT_EQ(step.space, Space::kScratch);
}

TEST(ParameterServerTest, TheFirstActiveWorkerServesByDefault) {
  CollectiveRequest request = FullRequest(Collective::kAllReduce, 4, 100);
  request.active = {1, 2, 3};
  const Plan plan = PlanAndProve(PlannerOf(Collective::kAllReduce, "parameter-server"), request);
  EXPECT_EQ(plan.MessagesFrom(0), 2);
  EXPECT_EQ(plan.MessagesFrom(1), 1);
  EXPECT_EQ(plan.proof.sent_elements_max, 200u);
}

}  // namespace
}  // namespace syncopate::plan::testing
