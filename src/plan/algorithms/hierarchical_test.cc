#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plan/collective/machines_testing.h"
#include "plan/collective/planner_testing.h"
#include "plan/collective/uneven_groups_testing.h"

namespace syncopate::plan::testing {
namespace {

TEST(HierarchicalTest, AllReduce) {
  ProveRandomPlans(
      Collective::kAllReduce, PlannerOf(Collective::kAllReduce, "hierarchical"),
      [](const Plan& plan) {
        EXPECT_LE(plan.proof.rounds, 2 * (static_cast<int>(plan.options.levels.size()) + 1));
        EXPECT_EQ(plan.proof.sent_elements_total, 2 * (plan.size() - 1) * plan.request.elements);
        for (const auto& groups : plan.options.levels) {
          EXPECT_EQ(CrossingElements(plan, groups),
                    2 * (groups.size() - 1) * plan.request.elements);
        }
      });
}

TEST(HierarchicalTest, EqualGroupsShareTheWorkEvenly) {
  PlannerOptions options;
  options.levels = {{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9, 10, 11}, {12, 13, 14, 15}},
                    {{0, 1, 2, 3, 4, 5, 6, 7}, {8, 9, 10, 11, 12, 13, 14, 15}}};
  const uint64_t elements = 64 * 16;
  const Plan plan = PlanAndProve(PlannerOf(Collective::kAllReduce, "hierarchical"),
                                 FullRequest(Collective::kAllReduce, 16, elements), options);
  EXPECT_EQ(plan.proof.rounds, 6);
  EXPECT_EQ(plan.proof.sent_elements_max, 2 * elements * 15 / 16);
}

TEST(HierarchicalTest, UnevenGroupsLeaveNobodyIdleAmongGroups) {
  ExpectNobodyIdleBetweenUnevenGroups(PlannerOf(Collective::kAllReduce, "hierarchical"));
}

TEST(HierarchicalTest, MoreChunksThanAllowedAreRefused) {
  // One group of 100 and 100 groups of one, ten times over: 100^10 shares.
  CollectiveRequest request = FullRequest(Collective::kAllReduce, 2000, 10);
  std::vector<std::vector<int>> groups(1);
  for (int rank = 0; rank < 1000; ++rank) groups[0].push_back(rank);
  for (int rank = 1000; rank < 2000; ++rank) groups.push_back({rank});
  PlannerOptions options;
  options.levels = {groups};
  options.pieces = 100;
  absl::StatusOr<Program> program =
      PlannerOf(Collective::kAllReduce, "hierarchical")(request, options);
  ASSERT_EQ(program.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(program.status().message()), ::testing::HasSubstr("use fewer pieces"));
}

}  // namespace
}  // namespace syncopate::plan::testing
