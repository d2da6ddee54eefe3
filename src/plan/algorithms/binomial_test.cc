#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plan/collective/planner_testing.h"

namespace syncopate::plan::testing {
namespace {

TEST(BinomialTest, Broadcast) {
  ProveRandomPlans(
      Collective::kBroadcast, PlannerOf(Collective::kBroadcast, "binomial"), [](const Plan& plan) {
        EXPECT_LE(plan.proof.rounds, CeilLog2(plan.size()));
        EXPECT_LE(plan.Messages(), plan.size() - 1);
        EXPECT_LE(plan.MessagesFrom(0), CeilLog2(plan.size()));
        EXPECT_EQ(plan.proof.sent_elements_total, (plan.size() - 1) * plan.request.elements);
      });
}

TEST(BinomialTest, Reduce) {
  ProveRandomPlans(
      Collective::kReduce, PlannerOf(Collective::kReduce, "binomial"), [](const Plan& plan) {
        EXPECT_LE(plan.proof.rounds, CeilLog2(plan.size()));
        EXPECT_EQ(plan.proof.sent_elements_total, (plan.size() - 1) * plan.request.elements);
        EXPECT_LE(plan.proof.sent_elements_max, plan.request.elements);
      });
}

TEST(BinomialTest, Gather) {
  ProveRandomPlans(Collective::kGather, PlannerOf(Collective::kGather, "binomial"),
                   [](const Plan& plan) {
                     EXPECT_LE(plan.proof.rounds, CeilLog2(plan.size()));
                     EXPECT_LE(plan.proof.sent_elements_max, plan.request.elements);
                   });
}

TEST(BinomialTest, Scatter) {
  ProveRandomPlans(Collective::kScatter, PlannerOf(Collective::kScatter, "binomial"),
                   [](const Plan& plan) {
                     EXPECT_LE(plan.proof.rounds, CeilLog2(plan.size()));
                     EXPECT_LE(plan.proof.sent_elements_max, plan.request.elements);
                   });
}

TEST(BinomialTest, PowersOfTwoTakeLogRounds) {
  for (int workers : {2, 4, 8, 16, 32}) {
    const uint64_t elements = static_cast<uint64_t>(workers) * 10;
    const int log = CeilLog2(workers);
    const Plan broadcast = PlanAndProve(PlannerOf(Collective::kBroadcast, "binomial"),
                                        FullRequest(Collective::kBroadcast, workers, elements));
    EXPECT_EQ(broadcast.proof.rounds, log);
    EXPECT_EQ(broadcast.proof.sent_elements_max, static_cast<uint64_t>(log) * elements);
    const Plan scatter = PlanAndProve(PlannerOf(Collective::kScatter, "binomial"),
                                      FullRequest(Collective::kScatter, workers, elements));
    EXPECT_EQ(scatter.proof.rounds, log);
    EXPECT_EQ(scatter.proof.sent_elements_max, elements - 10) << "the root sends each block once";
    EXPECT_EQ(scatter.MessagesFrom(0), log);
  }
}

}  // namespace
}  // namespace syncopate::plan::testing
