#include "plan/groups/round_times.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/program_validator.h"
#include "model/topology_makers.h"
#include "plan/collective/select.h"
#include "plan/groups/ds_sync.h"

namespace syncopate::plan {
namespace {

// A model whose S / B is 1 s, so that times are in the units of the formulas.
constexpr uint64_t kElementsPlayed = 6'000'000;
constexpr double kRatePlayed = 4. * kElementsPlayed;

struct TwoRacks {
  explicit TwoRacks(double uplink)
      : topology(TwoRackTopology(4, kRatePlayed, uplink * kRatePlayed, 1e-6)),
        placement(Devices(topology)) {}

  const Topology topology;
  const std::vector<int> placement;
};

TEST(RoundTimesTest, ARoundTakesAsLongAsItsSlowestGroup) {
  const TwoRacks world(1);
  const GroupNetwork network = GroupNetwork::Of(world.topology, world.placement).value();
  RoundPlayer player(world.topology, world.placement, network, kElementsPlayed, 4);
  const absl::StatusOr<PlayedRound> round = player.Play({{0, 4}, {1, 2, 3}, {5, 6, 7}});
  ASSERT_EQ(std::string(round.status().message()), "");
  EXPECT_NEAR(round->seconds, 4. / 3, 0.05);
  EXPECT_NEAR(round->seconds,
              network.RoundSeconds({{0, 4}, {1, 2, 3}, {5, 6, 7}}, 4. * kElementsPlayed), 0.05);
  EXPECT_EQ(round->algorithms.size(), 3u);
  EXPECT_EQ(round->algorithms[1], round->algorithms[2]);
  EXPECT_NEAR(round->uplink_bytes[0], 4. * kElementsPlayed, 16);  // of rack0
  const absl::StatusOr<PlayedRound> alone = player.Play({{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}});
  ASSERT_TRUE(alone.ok());
  EXPECT_EQ(alone->seconds, 0);
}

// Two pairs over one uplink take twice as long as one.
TEST(RoundTimesTest, GroupsShareUplinks) {
  const TwoRacks world(1);
  const GroupNetwork network = GroupNetwork::Of(world.topology, world.placement).value();
  RoundPlayer player(world.topology, world.placement, network, kElementsPlayed, 4);
  const double one = player.Play({{0, 4}, {1}, {2}, {3}, {5}, {6}, {7}})->seconds;
  const double two = player.Play({{0, 4}, {1, 5}, {2}, {3}, {6}, {7}})->seconds;
  EXPECT_NEAR(two, 2 * one, 0.02 * one);
}

// What is played together is still what each group would run alone, bound for bound.
TEST(RoundTimesTest, ProgramsPlayedTogetherAreWellFormed) {
  const TwoRacks world(0.5);
  const GroupNetwork network = GroupNetwork::Of(world.topology, world.placement).value();
  for (const uint64_t elements : {uint64_t{0}, uint64_t{2}, uint64_t{1001}}) {
    std::vector<Program> programs;
    std::vector<const Program*> at;
    const std::vector<std::vector<int>> members = {{1, 6, 7}, {0, 2, 3, 4, 5}};
    for (const std::vector<int>& group : members) {
      CollectiveRequest request;
      request.workers = static_cast<int>(group.size());
      for (int i = 0; i < request.workers; ++i) request.active.push_back(i);
      request.elements = elements;
      SelectOptions options;
      options.algorithm = group.size() == 3 ? "direct" : "ring";
      std::vector<int> placement;
      for (const int rank : group) placement.push_back(world.placement[static_cast<size_t>(rank)]);
      programs.push_back(
          SelectProgram(request, 4, world.topology, placement, options).value().program);
    }
    for (const Program& program : programs) at.push_back(&program);
    const Program together = PlayedTogether(8, at, members);
    EXPECT_EQ(std::string(Validate(together).message()), "") << elements;
    uint64_t sent = 0, expected = 0;
    for (const std::vector<Step>& steps : together.steps) {
      for (const Step& step : steps) sent += step.kind == StepKind::kSend ? together.size(step) : 0;
    }
    for (const Program& program : programs) {
      for (const std::vector<Step>& steps : program.steps) {
        for (const Step& step : steps) {
          expected += step.kind == StepKind::kSend ? program.size(step) : 0;
        }
      }
    }
    EXPECT_EQ(sent, expected);
  }
}

}  // namespace
}  // namespace syncopate::plan
