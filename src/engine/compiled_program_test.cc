#include "engine/compiled_program.h"

#include <string>
#include <vector>

#include "engine/request_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plan/collective/planners.h"

namespace syncopate::engine {
namespace {

using Shape = CompiledProgram::Shape;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Shape ShapeOf(const Program& program) {
  const auto compiled = CompileProgram(program, 0);
  EXPECT_TRUE(compiled.ok()) << compiled.status();
  return (*compiled)->shape;
}

TEST(CompiledProgramTest, KnowsAnExchange) {
  for (int workers : {2, 3, 8}) {
    const Program program = *plan::PlanBy("direct", AllReduceOf(workers, 1000), {});
    const auto compiled = *CompileProgram(program, workers - 1);
    ASSERT_EQ(compiled->shape, Shape::kExchange);
    uint64_t covered = 0;
    for (const CompiledProgram::Share& share : compiled->shares) {
      EXPECT_EQ(share.begin, covered);
      covered = share.end;
    }
    EXPECT_EQ(covered, 1000u);
  }
  // Each worker starts with its own and adds the others in the program's order.
  const auto compiled = *CompileProgram(*plan::PlanBy("direct", AllReduceOf(3, 1000), {}), 1);
  EXPECT_THAT(compiled->shares[1].order, ElementsAre(1, 0, 2));
}

TEST(CompiledProgramTest, KnowsAOneShot) {
  const auto compiled = *CompileProgram(*plan::PlanBy("one-shot", AllReduceOf(4, 100), {}), 2);
  ASSERT_EQ(compiled->shape, Shape::kOneShot);
  EXPECT_THAT(compiled->order, ElementsAre(0, 1, 2, 3));
}

TEST(CompiledProgramTest, OthersRunStepByStep) {
  EXPECT_EQ(ShapeOf(*plan::PlanBy("ring", AllReduceOf(4, 100), {})), Shape::kSteps);
  EXPECT_EQ(ShapeOf(*plan::PlanBy("recursive-doubling", AllReduceOf(4, 100), {})), Shape::kSteps);
  plan::CollectiveRequest some = AllReduceOf(4, 1000);
  some.active = {0, 1, 3};  // the shapes are for groups in which all take part
  EXPECT_EQ(ShapeOf(*plan::PlanBy("direct", some, {})), Shape::kSteps);
}

TEST(CompiledProgramTest, ARelayMayUseItsScratchOnly) {
  plan::CollectiveRequest some = AllReduceOf(4, 1000);
  some.active = {0, 1, 3};
  plan::PlannerOptions options;
  options.servers = {2};
  Program program = *plan::PlanBy("parameter-server", some, options);
  ASSERT_FALSE(program.steps[2].empty()) << "it does not relay";
  EXPECT_FALSE((*CompileProgram(program, 2))->active);
  EXPECT_TRUE((*CompileProgram(program, 3))->active);
  program.steps[2][0].space = Space::kData;
  const absl::Status status = CompileProgram(program, 2).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("worker 2, step 0 uses data"));
}

// Those of all workers made a program of 64 take a megabyte for as long as it was remembered.
TEST(CompiledProgramTest, KeepsOnlyTheStepsOfItsOwnWorker) {
  const Program program = *plan::PlanBy("ring", AllReduceOf(8, 1000), {});
  const auto compiled = *CompileProgram(program, 3);
  EXPECT_EQ(compiled->plan.size(), program.steps[3].size());
  for (size_t i = 0; i < compiled->plan.size(); ++i) {
    EXPECT_EQ(compiled->plan[i].step, program.steps[3][i]) << i;
  }
  EXPECT_TRUE(compiled->program.steps.empty());
  EXPECT_EQ(compiled->digest, DigestOf(program).low);
}

TEST(CompiledProgramTest, NothingMovesForOneWorkerOrNoElements) {
  EXPECT_EQ(ShapeOf(*plan::PlanBy("direct", AllReduceOf(1, 1000), {})), Shape::kEmpty);
  EXPECT_EQ(ShapeOf(*plan::PlanBy("direct", AllReduceOf(4, 0), {})), Shape::kEmpty);
}

// Every single change of a worker's step that keeps the program well-formed must make it lose its
// shape: recognising a program that does something else would compute something else.
TEST(CompiledProgramTest, AChangedStepLosesTheShape) {
  for (const Program& original : {*plan::PlanBy("direct", AllReduceOf(3, 1000), {}),
                                  *plan::PlanBy("one-shot", AllReduceOf(3, 1000), {})}) {
    int tried = 0;
    for (size_t w = 0; w < 3; ++w) {
      for (size_t i = 0; i < original.steps[w].size(); ++i) {
        for (int change = 0; change < 4; ++change) {
          Program program = original;
          Step& step = program.steps[w][i];
          switch (change) {
            case 0:
              if (step.chunk + 1 >= program.chunks(step.space)) continue;
              ++step.chunk;
              break;
            case 1:
              if (step.kind == StepKind::kReceive) {
                step.kind = StepKind::kReceiveReduce;
              } else if (step.kind == StepKind::kReceiveReduce) {
                step.kind = StepKind::kReceive;
              } else {
                continue;
              }
              break;
            case 2:
              if (step.after.empty()) continue;
              step.after.clear();
              break;
            case 3:
              if (step.after.empty() || step.after[0] == 0) continue;
              --step.after[0];
              break;
          }
          const auto compiled = CompileProgram(program, 0);
          if (!compiled.ok()) continue;
          ++tried;
          EXPECT_EQ((*compiled)->shape, Shape::kSteps)
              << original.algorithm << ": worker " << w << ", step " << i << ", change " << change;
        }
      }
    }
    EXPECT_GT(tried, 10);
  }
}

TEST(CompiledProgramTest, RefusesWhatIsNotWellFormed) {
  Program program = *plan::PlanBy("direct", AllReduceOf(3, 1000), {});
  EXPECT_FALSE(CompileProgram(program, 3).ok());
  EXPECT_FALSE(CompileProgram(program, -1).ok());
  program.steps[0].pop_back();
  EXPECT_FALSE(CompileProgram(program, 0).ok()) << "a send is never received";
}

}  // namespace
}  // namespace syncopate::engine
