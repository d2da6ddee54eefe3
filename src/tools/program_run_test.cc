#include "tools/program_run.h"

#include <string>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"
#include "model/program_validator.h"
#include "plan/collective/planners.h"

namespace syncopate::tools {
namespace {

plan::CollectiveRequest RequestOf(Collective collective, uint64_t elements) {
  plan::CollectiveRequest request;
  request.collective = collective;
  request.workers = 5;
  request.active = {0, 1, 3, 4};
  request.root = 3;
  request.target = 1;
  request.elements = collective == Collective::kBarrier ? 0 : elements;
  if (HasBlocks(collective)) request.block_elements.assign(4, elements / 4);
  return request;
}

TEST(ProgramRunTest, EveryPlannerIsRightInEveryTypeAndReduction) {
  uint64_t seed = 1;
  for (const plan::PlannerInfo* planner : plan::AllPlanners()) {
    const plan::CollectiveRequest request = RequestOf(planner->collective, 212);
    const Program program = *planner->plan(request, {});
    for (const DataType type : kDataTypes) {
      for (const ReduceOp op : kReduceOps) {
        if (op != ReduceOp::kSum && !Reduces(planner->collective)) continue;
        if (op == ReduceOp::kWeightedAverage && !IsFloating(type)) continue;
        SCOPED_TRACE(::testing::Message()
                     << Name(planner->collective) << " by " << planner->name << ", " << Name(type)
                     << ", " << Name(op) << ", seed " << ++seed);
        const absl::StatusOr<ProgramRun> run =
            RunOnLoop(program, {.type = type, .op = op, .seed = seed});
        ASSERT_TRUE(run.ok()) << run.status();
        ASSERT_EQ(run->Total().wrong, 0);
        if (planner->collective == Collective::kAllReduce) {
          ASSERT_EQ(run->Total().checked, 4 * 212);
        }
      }
    }
  }
}

TEST(ProgramRunTest, SumsOfManyWorkersStayExact) {
  plan::CollectiveRequest request;
  request.workers = 300;  // more than bfloat16 can count up to, if all brought something
  for (int rank = 0; rank < request.workers; ++rank) request.active.push_back(rank);
  request.elements = 40;
  const Program program = *plan::PlanBy("double-tree", request, {});
  for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kProduct}) {
    const absl::StatusOr<ProgramRun> run =
        RunOnLoop(program, {.type = DataType::kBFloat16, .op = op});
    ASSERT_TRUE(run.ok()) << run.status();
    EXPECT_EQ(run->Total().wrong, 0) << Name(op);
  }
}

// The command proves programs before it runs them. Here the proof is left out, so that the run has
// something to find.
TEST(ProgramRunTest, WrongResultsAreFound) {
  Program program = *plan::PlanBy("ring", RequestOf(Collective::kAllReduce, 212), {});
  int changed = 0;
  for (Step& step : program.steps[3]) {
    if (step.kind != StepKind::kReceiveReduce || changed++ > 0) continue;
    step.kind = StepKind::kReceive;  // a contribution is lost
  }
  ASSERT_GT(changed, 0);
  ASSERT_FALSE(ProveProgram(program).ok());
  const absl::StatusOr<ProgramRun> run = RunOnLoop(program, {});
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_GT(run->Total().wrong, 0);
  EXPECT_FALSE(run->right());
}

}  // namespace
}  // namespace syncopate::tools
