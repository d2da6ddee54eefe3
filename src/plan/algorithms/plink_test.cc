#include "gtest/gtest.h"
#include "plan/collective/machines_testing.h"
#include "plan/collective/planner_testing.h"

namespace syncopate::plan::testing {
namespace {

int FloorLog2(uint64_t value) { return value < 2 ? 0 : 1 + FloorLog2(value / 2); }

TEST(PlinkTest, AllReduce) {
  ProveRandomPlans(
      Collective::kAllReduce, PlannerOf(Collective::kAllReduce, "plink"), [](const Plan& plan) {
        const std::vector<std::vector<int>> machines = MachinesOf(plan.request, plan.options);
        EXPECT_LE(plan.proof.rounds,
                  2 * (FloorLog2(machines.size()) + FloorLog2(LargestOf(machines))));
        ExpectLeastTraffic(plan);
      });
}

TEST(PlinkTest, AlongGivenTrees) {
  ProveRandomPlans(Collective::kAllReduce,
                   WithRandomLocalTrees(PlannerOf(Collective::kAllReduce, "plink")),
                   ExpectLeastTraffic);
}

TEST(PlinkTest, OnlyLeadersTalkToOtherMachines) {
  PlannerOptions options;
  options.levels = {{{0, 1, 2}, {3, 4, 5}, {6}}};
  options.pieces = 3;
  const Plan plan = PlanAndProve(PlannerOf(Collective::kAllReduce, "plink"),
                                 FullRequest(Collective::kAllReduce, 7, 700), options);
  for (size_t rank = 0; rank < 7; ++rank) {
    bool crosses = false;
    for (const Step& step : plan.program.steps[rank]) {
      crosses |= step.kind == StepKind::kSend && static_cast<size_t>(step.peer) / 3 != rank / 3;
    }
    EXPECT_EQ(crosses, rank == 1 || rank == 4 || rank == 6) << rank;
  }
}

}  // namespace
}  // namespace syncopate::plan::testing
