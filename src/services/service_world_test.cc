// Thousands of small jobs with services and faults, each from one seed. SYNCOPATE_TEST_SEEDS=10000 runs
// that many instead of 1,000, SYNCOPATE_TEST_SEED=N only seed N.
#include <cstdio>
#include <cstdlib>

#include "absl/strings/numbers.h"
#include "gtest/gtest.h"
#include "services/service_world_testing.h"

namespace syncopate::services {
namespace {

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  uint64_t value = otherwise;
  if (text != nullptr && !absl::SimpleAtoi(text, &value)) ADD_FAILURE() << name << "=" << text;
  return value;
}

TEST(ServiceWorldTest, RequestsAreAnsweredOnceWhoeverIsLost) {
  const uint64_t only = FromEnvironment("SYNCOPATE_TEST_SEED", 0);
  const uint64_t first = only > 0 ? only : 1;
  const uint64_t seeds = only > 0 ? 1 : FromEnvironment("SYNCOPATE_TEST_SEEDS", 1000);
  ServiceWorld::Counts sum;
  int failures = 0;
  for (uint64_t seed = first; seed < first + seeds && failures < 20; ++seed) {
    ServiceWorld world(DrawWorld(seed));
    const std::string fault = world.Run();
    if (!fault.empty()) {
      ++failures;
      ADD_FAILURE() << "seed " << seed << ": " << fault;
    }
    const ServiceWorld::Counts& counts = world.counts();
    sum.events += counts.events;
    sum.messages += counts.messages;
    sum.parcels += counts.parcels;
    sum.answers += counts.answers;
    sum.adopted += counts.adopted;
    sum.refused += counts.refused;
    sum.blocked += counts.blocked;
    sum.released += counts.released;
    sum.takeovers += counts.takeovers;
    sum.rebuilt += counts.rebuilt;
    sum.ended += counts.ended;
    sum.left += counts.left;
    sum.joined += counts.joined;
    for (const auto& [name, times] : counts.faults) sum.faults[name] += times;
  }
  std::printf(
      "%lu jobs: %lu events, %lu messages, %lu parcels, %lu answers; %lu values adopted, %lu "
      "proposals "
      "refused, %lu kinds let go of, %lu waits at the end of 64; %lu takeovers, %lu rebuilt, %lu "
      "told of an end, %lu "
      "left, "
      "%lu joined\n",
      seeds, sum.events, sum.messages, sum.parcels, sum.answers, sum.adopted, sum.refused,
      sum.released, sum.blocked, sum.takeovers, sum.rebuilt, sum.ended, sum.left, sum.joined);
  for (const auto& [name, times] : sum.faults) std::printf("  %5lu x %s\n", times, name.c_str());
  if (seeds < 1000) return;
  // The faults have happened: each kind to each role at each step, before and after it.
  EXPECT_EQ(sum.faults.size(), 3u * 3 * 5 * 2);
  EXPECT_GT(sum.takeovers, 0u);
  EXPECT_GT(sum.rebuilt, 0u);
  EXPECT_GT(sum.ended, 0u);
  EXPECT_GT(sum.left, 0u);
  EXPECT_GT(sum.joined, 0u);
  EXPECT_GT(sum.blocked, 0u);
  EXPECT_GT(sum.refused, 0u);
  EXPECT_GT(sum.released, 0u);
}

}  // namespace
}  // namespace syncopate::services
