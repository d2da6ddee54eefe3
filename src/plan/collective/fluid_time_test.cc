#include "plan/collective/fluid_time.h"

#include "cost/program_cost.h"
#include "gtest/gtest.h"
#include "model/topology_makers.h"
#include "plan/collective/locality.h"
#include "plan/collective/planner_testing.h"

namespace syncopate::plan::testing {
namespace {

constexpr uint64_t kElements = uint64_t{64} * 1024 * 24;
constexpr double kBytes = 4.0 * kElements;

FluidTime TimeOf(const Plan& plan, const Topology& topology) {
  const absl::StatusOr<FluidTime> time = FluidTimeOf(
      plan.program, topology, *PlaceInOrder(topology, plan.request.workers), 4,
      plan.options.levels.empty() ? std::vector<std::vector<int>>{} : plan.options.levels[0]);
  EXPECT_TRUE(time.ok()) << time.status();
  return time.ok() ? *time : FluidTime();
}

TEST(FluidTimeTest, RingOnAStar) {
  const Topology star = StarTopology(8, 1e9, 1e-5);
  const Plan plan = PlanAndProve(PlannerOf(Collective::kAllReduce, "ring"),
                                 FullRequest(Collective::kAllReduce, 8, kElements));
  const FluidTime time = TimeOf(plan, star);
  EXPECT_DOUBLE_EQ(time.pipelined, 2 * kBytes * 7 / 8 / 1e9);
  EXPECT_DOUBLE_EQ(time.staged, time.pipelined);
  EXPECT_EQ(time.limit, "link device0>switch");
}

// Two machines of two: three quarters of the time would go by if nothing overlapped.
TEST(FluidTimeTest, StagesOfBlink) {
  const Topology mesh = MeshTopology(4, 1e9, 1e-5);
  PlannerOptions options;
  options.levels = {{{0, 1}, {2, 3}}};
  const Plan plan = PlanAndProve(PlannerOf(Collective::kAllReduce, "blink"),
                                 FullRequest(Collective::kAllReduce, 4, kElements), options);
  const FluidTime time = TimeOf(plan, mesh);
  // Inside: half of the data each way on each link. Between: half of half, twice.
  EXPECT_DOUBLE_EQ(time.staged, kBytes * (0.5 + 0.25 + 0.25 + 0.5) / 1e9);
  EXPECT_DOUBLE_EQ(time.pipelined, kBytes * 1.0 / 1e9);
}

TEST(FluidTimeTest, ServersWithoutDataReduceToo) {
  const Topology mesh = MeshTopology(3, 1e9, 1e-5);
  CollectiveRequest request = FullRequest(Collective::kAllReduce, 3, kElements);
  request.active = {0, 1};
  PlannerOptions options;
  options.servers = {2};
  const FluidTime time = TimeOf(
      PlanAndProve(PlannerOf(Collective::kAllReduce, "parameter-server"), request, options), mesh);
  EXPECT_DOUBLE_EQ(time.staged, 2 * kBytes / 1e9);
  EXPECT_DOUBLE_EQ(time.pipelined, kBytes / 1e9);  // the two directions are different links
}

// No way to run a program is quicker, and with many pieces the cost model comes near.
TEST(FluidTimeTest, BoundsTheCostModel) {
  const Topology racks = TwoRackTopology(4, 1e9, 2e9, 0);
  const std::vector<int> placement = *PlaceInOrder(racks, 8);
  PlannerOptions options;
  const CollectiveRequest request = FullRequest(Collective::kAllReduce, 8, kElements);
  options.levels = LevelsOf(racks, placement, request.active);
  options.servers = request.active;
  options.pieces = 64;
  for (const PlannerInfo* planner : AllPlanners()) {
    if (planner->collective != Collective::kAllReduce) continue;
    SCOPED_TRACE(planner->name);
    const Plan plan = PlanAndProve(planner->plan, request, options);
    const FluidTime time = TimeOf(plan, racks);
    const double played = cost::CostOf(plan.program, racks, placement, 4)->seconds;
    EXPECT_LE(time.pipelined, played * (1 + 1e-9));
    EXPECT_LE(time.pipelined, time.staged * (1 + 1e-9));
    for (const char* pipelined : {"ring", "hierarchical", "hierarchical-ring", "blink"}) {
      if (planner->name != pipelined) continue;
      EXPECT_LE(played, 1.15 * time.pipelined);
    }
  }
}

TEST(FluidTimeTest, RefusesAWrongPlacement) {
  const Plan plan = PlanAndProve(PlannerOf(Collective::kAllReduce, "ring"),
                                 FullRequest(Collective::kAllReduce, 4, 64));
  const Topology star = StarTopology(4, 1e9, 0);
  EXPECT_EQ(FluidTimeOf(plan.program, star, {1, 2}, 4, {}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace syncopate::plan::testing
