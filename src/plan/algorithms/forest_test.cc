// The forest as one of the planners. plan/forest/ has the tests of the plans themselves.
#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/topology_makers.h"
#include "plan/collective/planner_testing.h"
#include "plan/forest/forest_planner.h"

namespace syncopate::plan::testing {
namespace {

using ::testing::HasSubstr;

const PlannerInfo& Forest() { return **FindPlanner(Collective::kAllReduce, kForest); }

// Planning takes longer than by other planners, so there are fewer requests.
TEST(ForestPlannerTest, AnswersRequestsWithoutATopology) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Random random(seed);
    const CollectiveRequest request = RandomRequest(Collective::kAllReduce, &random);
    PlannerOptions options = RandomOptions(request, &random);
    options.chunk_bytes = 4 * random.Below(2000);
    PlanAndProve(Forest().plan, request, options);
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(ForestPlannerTest, VariantsAreSetsOfTreesAndSizesOfChunks) {
  const Topology racks = TwoRackTopology(3, 1e9, 1e9, 1e-5);
  const std::vector<int> placement = *PlaceInOrder(racks, 6);
  const CollectiveRequest request = FullRequest(Collective::kAllReduce, 6, 1 << 20);
  PlanningContext context(request, 4, racks, placement);
  const std::vector<Variant> variants = *Forest().variants(context);
  ASSERT_FALSE(variants.empty());
  EXPECT_FALSE(variants[0].finer);
  EXPECT_EQ(variants[0].options.chunk_bytes, 1u << 20);
  for (const Variant& variant : variants) {
    SCOPED_TRACE(variant.name);
    EXPECT_THAT(variant.name, HasSubstr("of trees"));
    const Plan plan = PlanAndProve(Forest().plan, request, variant.options);
    EXPECT_EQ(plan.program.algorithm, kForest);
    // About as large as asked for.
    for (size_t i = 1; i < plan.program.data_bounds.size(); ++i) {
      EXPECT_LE(4 * (plan.program.data_bounds[i] - plan.program.data_bounds[i - 1]),
                2 * variant.options.chunk_bytes);
    }
  }
  // The size that was asked for, and no other.
  context.chunk_bytes = 50'000;
  for (const Variant& variant : *Forest().variants(context)) {
    EXPECT_EQ(variant.options.chunk_bytes, 50'000u);
    EXPECT_FALSE(variant.finer);
  }
}

TEST(ForestPlannerTest, SettingsReachThePlan) {
  const Topology racks = TwoRackTopology(3, 1e9, 1e9, 1e-5);
  ForestOptions one_pair;
  one_pair.trees_max = 1;
  SelectOptions options;
  options.algorithm = std::string(kForest);
  options.data = ForestSettings(one_pair);
  const absl::StatusOr<Selection> selection = SelectProgram(
      FullRequest(Collective::kAllReduce, 6, 1 << 20), 4, racks, *PlaceInOrder(racks, 6), options);
  ASSERT_TRUE(selection.ok()) << selection.status();
  const ForestPlan* plan = ForestOf(selection->candidates[0]);
  ASSERT_NE(plan, nullptr);
  EXPECT_EQ(plan->pairs.size(), 1u);
  EXPECT_EQ(ForestOf(Candidate()), nullptr);
}

TEST(ForestPlannerTest, IsNotTriedWhereItDoesNotPayOrTakesLong) {
  const Topology star = StarTopology(65, 1e9, 1e-5);
  const std::vector<int> placement = *PlaceInOrder(star, 65);
  const CollectiveRequest request = FullRequest(Collective::kAllReduce, 65, 1 << 20);
  PlanningContext context(request, 4, star, placement);
  EXPECT_EQ(Forest().limit(context), "for more than 64 workers or 400 links it must be asked for");
  context.memory = SharedMemory();
  EXPECT_EQ(Forest().limit(context), "the workers share memory");
  const CollectiveRequest empty = FullRequest(Collective::kAllReduce, 4, 0);
  EXPECT_TRUE(Forest().variants(PlanningContext(empty, 4, star, placement))->empty());
}

}  // namespace
}  // namespace syncopate::plan::testing
