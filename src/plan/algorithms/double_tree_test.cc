#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plan/collective/planner_testing.h"
#include "plan/collective/shares.h"

namespace syncopate::plan::testing {
namespace {

TEST(DoubleTreeTest, AllReduce) {
  ProveRandomPlans(Collective::kAllReduce, PlannerOf(Collective::kAllReduce, "double-tree"),
                   [](const Plan& plan) {
                     const uint64_t elements = plan.request.elements;
                     EXPECT_EQ(plan.proof.sent_elements_total, 2 * (plan.size() - 1) * elements);
                     // A parent waits for two children, up, and sends to two, down; the messages
                     // themselves form chains of twice the depth.
                     EXPECT_LE(plan.proof.rounds, 2 * (CeilLog2(plan.size() + 1) - 1));
                     // In its inner tree a worker sends up once and down twice, in the other one up
                     // once: two halves of the data up and two down; and a piece can be larger than
                     // the average by the rounding.
                     EXPECT_LE(plan.proof.sent_elements_max,
                               2 * elements + 4 * plan.options.pieces * 2 * kCutAlignment);
                   });
}

// The workers that receive in order to add the chunk: the inner nodes of its tree.
std::set<int> InnerNodes(const Plan& plan, uint32_t chunk) {
  std::set<int> inner;
  for (int rank : plan.request.active) {
    for (const Step& step : plan.program.steps[static_cast<size_t>(rank)]) {
      if (step.kind == StepKind::kReceiveReduce && step.chunk == chunk) inner.insert(rank);
    }
  }
  return inner;
}

TEST(DoubleTreeTest, NobodyIsAnInnerNodeOfBothTrees) {
  for (int workers = 2; workers <= 33; ++workers) {
    const Plan plan = PlanAndProve(PlannerOf(Collective::kAllReduce, "double-tree"),
                                   FullRequest(Collective::kAllReduce, workers, 1000));
    const std::set<int> first = InnerNodes(plan, 0), second = InnerNodes(plan, 1);
    EXPECT_EQ(first.size(), static_cast<size_t>(workers / 2));
    EXPECT_EQ(second.size(), static_cast<size_t>(workers / 2));
    for (int rank : first) EXPECT_EQ(second.count(rank), 0u) << rank << " of " << workers;
  }
}

TEST(DoubleTreeTest, PiecesDoNotWaitForEachOther) {
  const CollectiveRequest request = FullRequest(Collective::kAllReduce, 16, 100000);
  PlannerOptions options;
  const int rounds =
      PlanAndProve(PlannerOf(Collective::kAllReduce, "double-tree"), request, options).proof.rounds;
  options.pieces = 20;
  EXPECT_EQ(
      PlanAndProve(PlannerOf(Collective::kAllReduce, "double-tree"), request, options).proof.rounds,
      rounds);
}

}  // namespace
}  // namespace syncopate::plan::testing
