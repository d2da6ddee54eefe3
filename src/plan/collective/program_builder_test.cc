#include "plan/collective/program_builder.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plan/collective/planner_testing.h"

namespace syncopate::plan::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

CollectiveRequest Request() { return FullRequest(Collective::kAllReduce, 3, 30); }

TEST(ProgramBuilderTest, ReadsFollowTheLastWrite) {
  ProgramBuilder builder(Request(), "test", {0, 10, 20, 30});
  builder.Receive(0, 1, Data(0));
  builder.Receive(0, 1, Data(1));
  builder.Send(0, 2, Data(0));
  builder.Send(0, 1, Data(0));
  builder.Send(0, 1, Data(2));
  const Program program = *builder.Finish();
  EXPECT_THAT(program.steps[0][0].after, IsEmpty());
  EXPECT_THAT(program.steps[0][1].after, IsEmpty());
  EXPECT_THAT(program.steps[0][2].after, ElementsAre(0));
  EXPECT_THAT(program.steps[0][3].after, ElementsAre(0));
  EXPECT_THAT(program.steps[0][4].after, IsEmpty());
}

TEST(ProgramBuilderTest, WritesFollowTheReadsSinceTheLastWrite) {
  ProgramBuilder builder(Request(), "test", {0, 10, 20, 30});
  builder.Receive(0, 1, Data(0));
  builder.Send(0, 1, Data(0));
  builder.Send(0, 2, Data(0));
  builder.ReceiveReduce(0, 1, Data(0));
  builder.ReceiveReduce(0, 2, Data(0));
  const Program program = *builder.Finish();
  EXPECT_THAT(program.steps[0][3].after, ElementsAre(1, 2));
  EXPECT_THAT(program.steps[0][4].after, ElementsAre(3));
}

TEST(ProgramBuilderTest, RunsFollowWhateverTouchedTheirChunks) {
  ProgramBuilder builder(Request(), "test", {0, 10, 20, 30});
  builder.Receive(0, 1, Data(0));
  builder.Receive(0, 1, Data(1));
  builder.Receive(0, 1, Data(2));
  builder.Send(0, 2, Data(1, 2));
  builder.Receive(0, 2, Data(0, 3));
  const Program program = *builder.Finish();
  EXPECT_THAT(program.steps[0][3].after, ElementsAre(1, 2));
  EXPECT_THAT(program.steps[0][4].after, ElementsAre(0, 3));
}

TEST(ProgramBuilderTest, EdgesThatFollowFromOthersAreLeftOut) {
  ProgramBuilder builder(Request(), "test", {0, 30}, {0, 30});
  builder.Copy(0, Data(0), Scratch(0));
  builder.Receive(0, 1, Data(0));        // after the copy has read data
  builder.ReceiveReduce(0, 2, Data(0));  // after that
  builder.Reduce(0, Scratch(0), Data(0));
  const Program program = *builder.Finish();
  EXPECT_THAT(program.steps[0][1].after, ElementsAre(0));
  EXPECT_THAT(program.steps[0][2].after, ElementsAre(1));
  EXPECT_THAT(program.steps[0][3].after, ElementsAre(2)) << "the copy comes before step 1";
}

TEST(ProgramBuilderTest, EmptyMovesAreLeftOut) {
  ProgramBuilder builder(Request(), "test", {0, 10, 10, 30});
  builder.Move(0, 1, Data(1));
  builder.MoveReduce(0, 1, Data(1));
  builder.Move(0, 1, Data(0, 2));
  const Program program = *builder.Finish();
  ASSERT_EQ(program.steps[0].size(), 1u);
  EXPECT_EQ(program.steps[0][0].count, 2u);
  EXPECT_EQ(program.steps[1].size(), 1u);
}

TEST(ProgramBuilderTest, BlocksAreRunsOfChunks) {
  CollectiveRequest request = FullRequest(Collective::kAllGather, 3, 30);
  ProgramBuilder builder(request, "test", {0, 5, 10, 15, 20, 25, 30});
  EXPECT_THAT(builder.Finish()->blocks, ElementsAre(0, 2, 4, 6));
}

TEST(ProgramBuilderTest, TooManyStepsAreRefused) {
  ProgramBuilder builder(Request(), "test", {0, 30});
  for (int i = 0; i < 65536; ++i) builder.Send(0, 1, Data(0));
  builder.Send(0, 1, Data(0));
  builder.Receive(0, 1, Data(0));
  EXPECT_EQ(builder.Finish().status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace syncopate::plan::testing
