#include "plan/collective/folding.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plan/collective/planner_testing.h"

namespace syncopate::plan::testing {
namespace {

using ::testing::ElementsAre;

TEST(FoldingTest, APowerOfTwoGoesOn) {
  CollectiveRequest request = FullRequest(Collective::kAllReduce, 9, 10);
  request.active = {1, 2, 4, 5, 6, 8};
  ProgramBuilder builder(request, "test", {0, 10});
  EXPECT_THAT(FoldIn(request, Data(0), &builder), ElementsAre(1, 4, 6, 8));
  FoldOut(request, Data(0), &builder);
  const Program program = *builder.Finish();
  ASSERT_EQ(program.steps[5].size(), 2u);
  EXPECT_EQ(program.steps[5][0].kind, StepKind::kSend);
  EXPECT_EQ(program.steps[5][0].peer, 4);
  EXPECT_EQ(program.steps[5][1].kind, StepKind::kReceive);
  EXPECT_TRUE(program.steps[6].empty());
}

}  // namespace
}  // namespace syncopate::plan::testing
