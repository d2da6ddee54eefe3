// Jobs with faults, each in both worlds. A failure prints the command that repeats it.
#include "simulation/simulation.h"

#include "gtest/gtest.h"

namespace syncopate::simulation {
namespace {

constexpr uint64_t kSeeds = 200;

class SimulationTest : public ::testing::TestWithParam<World> {};

TEST_P(SimulationTest, JobsSurviveTheirFaults) {
  int calls_new = 0, calls_old = 0, losses = 0, regroups = 0, mail_posted = 0, mail_refused = 0;
  int values_used = 0, values_refused = 0, values_awaited = 0, hosts_lost = 0, unhosted = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const Report report = Simulate(seed, GetParam());
    EXPECT_EQ(report.failure, "") << "repeat it by: " << RepeatCommand(seed, GetParam());
    calls_new += report.calls_new;
    calls_old += report.calls_old;
    losses += report.losses;
    regroups += report.regroups;
    mail_posted += report.mail_posted;
    mail_refused += report.mail_refused;
    values_used += report.values_used;
    values_refused += report.values_refused;
    values_awaited += report.values_awaited;
    hosts_lost += report.hosts_lost;
    unhosted += report.unhosted ? 1 : 0;
  }
  // The faults have happened, and at all sorts of moments.
  EXPECT_GT(calls_new, 10 * static_cast<int>(kSeeds));
  EXPECT_GT(calls_old, static_cast<int>(kSeeds));
  EXPECT_GT(losses, static_cast<int>(kSeeds) / 2);
  EXPECT_GT(regroups, static_cast<int>(kSeeds));
  EXPECT_GT(mail_posted, 10 * static_cast<int>(kSeeds));
  EXPECT_GT(mail_refused, 0);
  EXPECT_GT(values_used, static_cast<int>(kSeeds));
  EXPECT_GT(values_refused, 0);
  EXPECT_GT(values_awaited, 0);
  EXPECT_GT(hosts_lost, static_cast<int>(kSeeds) / 10);
  EXPECT_GT(unhosted, 0);
}

TEST_P(SimulationTest, TheSameSeedIsTheSameRun) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const Report once = Simulate(seed, GetParam());
    const Report again = Simulate(seed, GetParam());
    EXPECT_EQ(once.digest, again.digest) << seed;
    EXPECT_EQ(once.events, again.events) << seed;
    EXPECT_NE(once.digest, Simulate(seed + 1, GetParam()).digest) << "the seed decides nothing";
  }
}

INSTANTIATE_TEST_SUITE_P(Worlds, SimulationTest, ::testing::Values(World::kFrames, World::kSockets),
                         [](const auto& world) {
                           return world.param == World::kFrames ? "Frames" : "Sockets";
                         });

}  // namespace
}  // namespace syncopate::simulation
