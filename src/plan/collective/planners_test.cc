#include "plan/collective/planners.h"

#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plan/collective/planner_testing.h"

namespace syncopate::plan::testing {
namespace {

using ::testing::HasSubstr;

TEST(PlannersTest, EveryCollectiveHasOne) {
  for (Collective collective : kCollectives) {
    bool found = false;
    for (const PlannerInfo* planner : AllPlanners()) found |= planner->collective == collective;
    EXPECT_TRUE(found) << Name(collective);
  }
}

TEST(PlannersTest, NamesAreUniqueAndFound) {
  std::set<std::pair<Collective, std::string>> seen;
  for (const PlannerInfo* planner : AllPlanners()) {
    EXPECT_TRUE(seen.insert({planner->collective, planner->name}).second) << planner->name;
    EXPECT_FALSE(planner->summary.empty());
    absl::StatusOr<const PlannerInfo*> found = FindPlanner(planner->collective, planner->name);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(*found, planner);
  }
}

TEST(PlannersTest, AreInOrder) {
  const std::vector<const PlannerInfo*> all = AllPlanners();
  for (size_t i = 1; i < all.size(); ++i) {
    const PlannerInfo &a = *all[i - 1], &b = *all[i];
    EXPECT_LT(std::tie(a.collective, a.preference, a.name),
              std::tie(b.collective, b.preference, b.name));
  }
}

TEST(PlannersTest, RegistryRefusesWhatItCannotTellApart) {
  PlannerRegistry registry;
  const auto add = [&](std::string name, Collective collective, int preference, bool plans = true) {
    PlannerInfo info;
    info.name = std::move(name);
    info.collective = collective;
    info.preference = preference;
    if (plans) {
      info.plan = [](const CollectiveRequest&, const PlannerOptions&) { return Program(); };
    }
    return registry.TryAdd(std::move(info)).code();
  };
  EXPECT_EQ(add("late", Collective::kReduce, 2), absl::StatusCode::kOk);
  EXPECT_EQ(add("b", Collective::kReduce, 1), absl::StatusCode::kOk);
  EXPECT_EQ(add("a", Collective::kReduce, 1), absl::StatusCode::kOk);
  EXPECT_EQ(add("z", Collective::kAllReduce, 9), absl::StatusCode::kOk);
  EXPECT_EQ(add("a", Collective::kGather, 1), absl::StatusCode::kOk);
  EXPECT_EQ(add("a", Collective::kReduce, 7), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(add("", Collective::kReduce, 1), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(add("With space", Collective::kReduce, 1), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(add("a,b", Collective::kReduce, 1), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(add("c", Collective::kReduce, 1, /*plans=*/false), absl::StatusCode::kInvalidArgument);
  std::string order;
  for (const PlannerInfo* planner : registry.All()) absl::StrAppend(&order, planner->name, " ");
  EXPECT_EQ(order, "z a b late a ");
}

TEST(PlannersTest, UnknownNameListsThoseThatExist) {
  absl::StatusOr<const PlannerInfo*> found = FindPlanner(Collective::kBroadcast, "ring");
  ASSERT_EQ(found.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(found.status().message(),
              HasSubstr("\"ring\" is not an algorithm for broadcast; choose binomial, chain, "
                        "scatter-all-gather, direct"));
}

TEST(PlannersTest, ProgramsBearTheNameOfTheirPlanner) {
  for (const PlannerInfo* planner : AllPlanners()) {
    SCOPED_TRACE(absl::StrCat(Name(planner->collective), " ", planner->name));
    const uint64_t elements = planner->collective == Collective::kBarrier ? 0 : 60;
    const Plan plan = PlanAndProve(planner->plan, FullRequest(planner->collective, 6, elements));
    EXPECT_EQ(plan.program.algorithm, planner->name);
  }
}

TEST(PlannersTest, AllAnswerEmptyBuffersAndLoneWorkers) {
  for (const PlannerInfo* planner : AllPlanners()) {
    SCOPED_TRACE(absl::StrCat(Name(planner->collective), " ", planner->name));
    for (int workers : {1, 2, 3, 8}) {
      PlanAndProve(planner->plan, FullRequest(planner->collective, workers, 0));
    }
    const uint64_t elements = planner->collective == Collective::kBarrier ? 0 : 100;
    CollectiveRequest alone = FullRequest(planner->collective, 1, elements);
    alone.workers = 5;
    PlanAndProve(planner->plan, alone);
  }
}

TEST(PlannersTest, AllRefuseBadRequests) {
  for (const PlannerInfo* planner : AllPlanners()) {
    SCOPED_TRACE(absl::StrCat(Name(planner->collective), " ", planner->name));
    CollectiveRequest request = FullRequest(planner->collective, 4, 0);
    request.active = {};
    EXPECT_EQ(planner->plan(request, {}).status().code(), absl::StatusCode::kInvalidArgument);
    request = FullRequest(planner->collective, 4, 0);
    PlannerOptions options;
    options.pieces = 0;
    EXPECT_EQ(planner->plan(request, options).status().code(), absl::StatusCode::kInvalidArgument);
    request.collective =
        planner->collective == Collective::kReduce ? Collective::kAllReduce : Collective::kReduce;
    EXPECT_EQ(planner->plan(request, {}).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(PlannersTest, AllRefuseToExceedTheLimits) {
  PlannerOptions options;
  options.pieces = 65536;
  for (const PlannerInfo* planner : AllPlanners()) {
    if (planner->collective == Collective::kBarrier) continue;
    SCOPED_TRACE(absl::StrCat(Name(planner->collective), " ", planner->name));
    absl::StatusOr<Program> program =
        planner->plan(FullRequest(planner->collective, 4, uint64_t{1} << 30), options);
    if (program.ok()) {
      EXPECT_EQ(Validate(*program), absl::OkStatus());
    } else {
      EXPECT_EQ(program.status().code(), absl::StatusCode::kInvalidArgument);
      EXPECT_THAT(program.status().message(), HasSubstr("use fewer pieces"));
    }
  }
}

TEST(PlannersTest, SameRequestSameProgram) {
  for (const PlannerInfo* planner : AllPlanners()) {
    Random random(7);
    const CollectiveRequest request = RandomRequest(planner->collective, &random);
    const PlannerOptions options = RandomOptions(request, &random);
    EXPECT_EQ(*planner->plan(request, options), *planner->plan(request, options));
  }
}

}  // namespace
}  // namespace syncopate::plan::testing
