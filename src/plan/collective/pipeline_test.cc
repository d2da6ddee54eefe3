#include "plan/collective/pipeline.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plan/collective/planner_testing.h"

namespace syncopate::plan::testing {
namespace {

TEST(PipelineTest, PiecesFollowEachOther) {
  ProgramBuilder builder(FullRequest(Collective::kAllReduce, 2, 60), "test", {0, 10, 20, 30, 60});
  Pipeline pipeline(/*data_chunks=*/2, /*scratch_chunks=*/0);
  pipeline.MoveReduce(0, 0, 1, Data(0));
  pipeline.Move(1, 1, 0, Data(0));
  pipeline.MoveReduce(0, 1, 0, Data(1));
  pipeline.Emit(2, &builder);
  const Program program = *builder.Finish();
  std::vector<std::pair<StepKind, uint32_t>> seen;
  for (const Step& step : program.steps[0]) seen.push_back({step.kind, step.chunk});
  using enum StepKind;
  EXPECT_THAT(seen, ::testing::ElementsAre(
                        std::make_pair(kSend, 0u), std::make_pair(kReceiveReduce, 1u),  // time 0
                        std::make_pair(kReceive, 0u),                                   // time 1
                        std::make_pair(kSend, 2u), std::make_pair(kReceiveReduce, 3u),
                        std::make_pair(kReceive, 2u)));  // time 2
}

TEST(PipelineTest, NothingToDo) {
  ProgramBuilder builder(FullRequest(Collective::kAllReduce, 1, 60), "test", {0, 60});
  Pipeline(1, 0).Emit(3, &builder);
  EXPECT_TRUE(builder.Finish()->steps[0].empty());
}

}  // namespace
}  // namespace syncopate::plan::testing
