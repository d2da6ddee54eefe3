#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plan/collective/planner_testing.h"
#include "plan/collective/shares.h"

namespace syncopate::plan::testing {
namespace {

// No share is empty, so that no message is left out.
bool AllSharesFull(const Plan& plan) {
  return plan.request.elements >= static_cast<uint64_t>(plan.size() * plan.options.pieces);
}

// How much larger than elements / parts a part can be.
constexpr uint64_t kRounding = 2 * kCutAlignment;

TEST(RingTest, AllReduce) {
  ProveRandomPlans(Collective::kAllReduce, PlannerOf(Collective::kAllReduce, "ring"),
                   [](const Plan& plan) {
                     if (!AllSharesFull(plan)) return;
                     const int rounds = 2 * (plan.size() - 1);
                     const uint64_t elements = plan.request.elements;
                     EXPECT_EQ(plan.proof.rounds, rounds);
                     EXPECT_EQ(plan.proof.sent_elements_total, 2 * (plan.size() - 1) * elements);
                     EXPECT_LE(plan.proof.sent_elements_max,
                               rounds * (elements / plan.size() + plan.options.pieces * kRounding));
                     EXPECT_GE(plan.proof.sent_elements_max, rounds * elements / plan.size());
                     for (size_t i = 0; i < plan.request.active.size(); ++i) {
                       EXPECT_EQ(plan.MessagesFrom(i), rounds * plan.options.pieces);
                     }
                   });
}

TEST(RingTest, ReduceScatter) {
  ProveRandomPlans(Collective::kReduceScatter, PlannerOf(Collective::kReduceScatter, "ring"),
                   [](const Plan& plan) {
                     EXPECT_LE(plan.proof.rounds, plan.size() - 1);
                     EXPECT_EQ(plan.proof.sent_elements_total,
                               (plan.size() - 1) * plan.request.elements);
                   });
}

TEST(RingTest, AllGather) {
  ProveRandomPlans(
      Collective::kAllGather, PlannerOf(Collective::kAllGather, "ring"), [](const Plan& plan) {
        EXPECT_LE(plan.proof.rounds, plan.size() - 1);
        EXPECT_EQ(plan.proof.sent_elements_total, (plan.size() - 1) * plan.request.elements);
      });
}

TEST(RingTest, TalksToTheNextInOrderOnly) {
  CollectiveRequest request = FullRequest(Collective::kAllReduce, 5, 100);
  request.active = {0, 1, 3, 4};
  PlannerOptions options;
  options.order = {3, 0, 4, 1};
  const Plan plan = PlanAndProve(PlannerOf(Collective::kAllReduce, "ring"), request, options);
  const std::vector<int> next = {4, 3, -1, 0, 1};
  for (int rank : request.active) {
    for (const Step& step : plan.program.steps[static_cast<size_t>(rank)]) {
      if (step.kind == StepKind::kSend) {
        EXPECT_EQ(step.peer, next[static_cast<size_t>(rank)]);
      } else {
        EXPECT_EQ(next[static_cast<size_t>(step.peer)], rank);
      }
    }
  }
}

}  // namespace
}  // namespace syncopate::plan::testing
