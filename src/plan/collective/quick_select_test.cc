#include "plan/collective/quick_select.h"

#include "gtest/gtest.h"
#include "plan/collective/planners.h"

namespace syncopate::plan {
namespace {

double Seconds(absl::string_view name, const SharedMemory& memory, int workers, double bytes) {
  const PlannerInfo* planner = *FindPlanner(Collective::kAllReduce, name);
  return InPlaceTime(memory, planner->in_place(workers), workers, bytes).seconds();
}
double OneShotSeconds(const SharedMemory& memory, int workers, double bytes) {
  return Seconds("one-shot", memory, workers, bytes);
}
double DirectSeconds(const SharedMemory& memory, int workers, double bytes) {
  return Seconds("direct", memory, workers, bytes);
}

TEST(QuickSelectTest, CostsInPlace) {
  SharedMemory memory;
  memory.handover = 1e-5;
  memory.bandwidth = 1e9;
  EXPECT_DOUBLE_EQ(OneShotSeconds(memory, 4, 1000), 1e-5 + 4 * 7 * 1000 / 1e9);
  EXPECT_DOUBLE_EQ(DirectSeconds(memory, 4, 1000), 2e-5 + 2 * 4 * 1000 / 1e9);
  EXPECT_DOUBLE_EQ(StepwiseTime(memory, 4, 1000, true).seconds(), 2e-5 + 4 * 4 * 1000 / 1e9);
  EXPECT_DOUBLE_EQ(StepwiseTime(memory, 4, 1000, false).seconds(), 2e-5);
  EXPECT_EQ(OneShotSeconds(memory, 1, 1000), 0);
  EXPECT_EQ(DirectSeconds(memory, 1, 1000), 0);
}

TEST(QuickSelectTest, WhatFitsIntoTheCacheIsFaster) {
  SharedMemory memory;
  memory.bandwidth = 1e9;
  memory.cached_bandwidth = 1e10;
  memory.cache_bytes = 8000;
  EXPECT_DOUBLE_EQ(DirectSeconds(memory, 4, 2000), 16000 / 1e10);
  EXPECT_DOUBLE_EQ(DirectSeconds(memory, 4, 2001), 16008 / 1e9);
  EXPECT_DOUBLE_EQ(OneShotSeconds(memory, 4, 1001), 28 * 1001 / 1e9);  // the copies count too
}

// On a machine of two cores that four workers share.
TEST(QuickSelectTest, OneShotForSmallDirectForLarge) {
  const QuickSelect quick(4, HostCosts());
  EXPECT_EQ(quick.Algorithm(Collective::kAllReduce, 0), "one-shot");
  EXPECT_EQ(quick.Algorithm(Collective::kAllReduce, 4 << 10), "one-shot");
  EXPECT_EQ(quick.Algorithm(Collective::kAllReduce, 64 << 10), "direct");
  EXPECT_EQ(quick.Algorithm(Collective::kAllReduce, 100 << 20), "direct");
  EXPECT_GE(quick.BytesMax(Collective::kAllReduce, "one-shot"), 16u << 10);
  EXPECT_LE(quick.BytesMax(Collective::kAllReduce, "one-shot"), 64u << 10);
}

// At the border the two predictions meet.
TEST(QuickSelectTest, TheBorderIsWhereThePredictionsMeet) {
  for (const int workers : {2, 3, 4, 8, 16, 48}) {
    const HostCosts costs;
    const SharedMemory memory = MemoryOfHost(costs, workers);
    const QuickSelect quick(workers, costs);
    const double border = static_cast<double>(quick.BytesMax(Collective::kAllReduce, "one-shot"));
    EXPECT_LE(OneShotSeconds(memory, workers, border), DirectSeconds(memory, workers, border));
    EXPECT_GT(OneShotSeconds(memory, workers, border + 1),
              DirectSeconds(memory, workers, border + 1));
    EXPECT_EQ(
        quick.Algorithm(Collective::kAllReduce, quick.BytesMax(Collective::kAllReduce, "one-shot")),
        "one-shot");
    EXPECT_EQ(quick.Algorithm(Collective::kAllReduce,
                              quick.BytesMax(Collective::kAllReduce, "one-shot") + 1),
              "direct");
  }
}

TEST(QuickSelectTest, EveryAnswerIsAPlanner) {
  for (const int workers : {1, 2, 8}) {
    const QuickSelect quick(workers, HostCosts());
    for (const Collective collective : kCollectives) {
      for (const uint64_t bytes : {0, 100, 1 << 20}) {
        EXPECT_TRUE(FindPlanner(collective, quick.Algorithm(collective, bytes)).ok())
            << Name(collective) << " of " << bytes << " bytes among " << workers;
      }
    }
  }
}

}  // namespace
}  // namespace syncopate::plan
