#include <set>

#include "gtest/gtest.h"
#include "plan/collective/machines_testing.h"
#include "plan/collective/planner_testing.h"
#include "plan/collective/uneven_groups_testing.h"

namespace syncopate::plan::testing {
namespace {

TEST(HierarchicalRingTest, AllReduce) {
  ProveRandomPlans(Collective::kAllReduce, PlannerOf(Collective::kAllReduce, "hierarchical-ring"),
                   [](const Plan& plan) {
                     const std::vector<std::vector<int>> machines =
                         MachinesOf(plan.request, plan.options);
                     EXPECT_LE(plan.proof.rounds, 2 * (static_cast<int>(LargestOf(machines)) - 1) +
                                                      2 * (static_cast<int>(machines.size()) - 1));
                     ExpectLeastTraffic(plan);
                   });
}

TEST(HierarchicalRingTest, EverybodyHasOneNeighbourInsideAndOneOutside) {
  PlannerOptions options;
  options.levels = {{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9, 10, 11}}};
  const uint64_t elements = 64 * 12;
  const Plan plan = PlanAndProve(PlannerOf(Collective::kAllReduce, "hierarchical-ring"),
                                 FullRequest(Collective::kAllReduce, 12, elements), options);
  EXPECT_EQ(plan.proof.sent_elements_max, 2 * elements * 11 / 12);
  for (int rank = 0; rank < 12; ++rank) {
    std::set<int> peers;
    for (const Step& step : plan.program.steps[static_cast<size_t>(rank)]) {
      if (step.kind == StepKind::kSend) peers.insert(step.peer);
    }
    EXPECT_EQ(peers, (std::set<int>{rank / 4 * 4 + (rank + 1) % 4, (rank + 4) % 12})) << rank;
  }
}

TEST(HierarchicalRingTest, UnevenMachinesLeaveNobodyIdleBetweenMachines) {
  ExpectNobodyIdleBetweenUnevenGroups(PlannerOf(Collective::kAllReduce, "hierarchical-ring"));
}

}  // namespace
}  // namespace syncopate::plan::testing
