#include "plan/groups/consensus.h"

#include <cmath>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plan/groups/gossip.h"
#include "plan/groups/groups_testing.h"

namespace syncopate::plan {
namespace {

using ::testing::HasSubstr;

Pattern::Round Alone(int workers) {
  Pattern::Round round;
  for (int rank = 0; rank < workers; ++rank) round.push_back({rank});
  return round;
}

Pattern RandomGroups(uint64_t seed) {
  Random random(seed);
  Pattern pattern{"random", static_cast<int>(random.Between(2, 24)), {}};
  pattern.rounds.resize(random.Below(12) + 1);
  for (Pattern::Round& round : pattern.rounds) {
    round.resize(random.Below(static_cast<uint64_t>(pattern.workers)) + 1);
    for (int rank = 0; rank < pattern.workers; ++rank) {
      round[random.Below(round.size())].push_back(rank);
    }
    Sort(round);
  }
  return pattern;
}

TEST(ConsensusTest, AWorldAverageLeavesNothing) {
  const absl::StatusOr<Consensus> all = ConsensusOf({"all", 5, {{{0, 1, 2, 3, 4}}}});
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(all->sigma2, 0);
  EXPECT_EQ(all->lambda, 0);
  EXPECT_NEAR(all->variance, 0, 1e-12);
}

TEST(ConsensusTest, GroupsThatAreNeverShuffledAreRefused) {
  const Pattern never{"never", 6, {{{0, 1, 2}, {3, 4, 5}}, {{0, 2}, {1}, {3, 5}, {4}}}};
  EXPECT_TRUE(absl::IsFailedPrecondition(CheckConnected(never)));
  EXPECT_THAT(std::string(ConsensusOf(never).status().message()),
              HasSubstr("workers 0 and 3 do not learn of each other"));
  EXPECT_EQ(LambdaOf(never), 1);
}

TEST(ConsensusTest, PairsOfGossipAgreeAfterTheirPeriod) {
  for (int workers = 2; workers <= 64; workers *= 2) {
    const absl::StatusOr<Pattern> pairs = PlanGossipPairs(workers);
    ASSERT_TRUE(pairs.ok());
    ASSERT_TRUE(Validate(*pairs).ok());
    EXPECT_EQ(1 << pairs->period(), workers);
    const absl::StatusOr<Consensus> consensus = ConsensusOf(*pairs);
    ASSERT_TRUE(consensus.ok());
    EXPECT_NEAR(consensus->sigma2, 0, 1e-7);
    EXPECT_EQ(consensus->lambda, 0);
    // Pairs leave half of the differences, pairs of pairs a quarter, less the mean.
    double variance = 0;
    for (int groups = workers / 2; groups > 1; groups /= 2)
      variance += (groups - 1.) / (workers - 1);
    EXPECT_NEAR(consensus->variance, variance, 1e-5);
  }
  for (const int workers : {0, 3, 6, 8192}) EXPECT_FALSE(PlanGossipPairs(workers).ok());
}

// The long-run rate alone would call this the best pattern of all.
TEST(ConsensusTest, ARareWorldAverageHasALargeVariance) {
  Pattern rare{"rare", 8, std::vector<Pattern::Round>(63, Alone(8))};
  rare.rounds.push_back({{0, 1, 2, 3, 4, 5, 6, 7}});
  const absl::StatusOr<Consensus> consensus = ConsensusOf(rare);
  ASSERT_TRUE(consensus.ok());
  EXPECT_EQ(consensus->lambda, 0);
  EXPECT_NEAR(consensus->variance, 31.5, 0.01);
}

TEST(ConsensusTest, WhatIsLeftOfAPeriodMayBeTurned) {
  const Pattern turning{"turning", 4, {{{0, 1}, {2}, {3}}, {{0}, {1, 2}, {3}}, {{0}, {1}, {2, 3}}}};
  const absl::StatusOr<Consensus> consensus = ConsensusOf(turning);
  ASSERT_TRUE(consensus.ok());
  EXPECT_GT(consensus->lambda, 0);
  EXPECT_LE(std::pow(consensus->lambda, 3), consensus->sigma2 + 1e-9);
}

TEST(ConsensusTest, HoldsForRandomGroups) {
  int connected = 0;
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    const Pattern pattern = RandomGroups(seed);
    const absl::StatusOr<Consensus> consensus = ConsensusOf(pattern);
    if (!consensus.ok()) continue;
    ++connected;
    EXPECT_LE(std::pow(consensus->lambda, pattern.period()), consensus->sigma2 + 1e-6) << seed;
    EXPECT_NEAR(consensus->variance, VarianceByCovariance(pattern),
                1e-3 * consensus->variance + 1e-9)
        << seed;
    Random random(seed + 1);
    std::vector<double> values = RandomValues(pattern.workers, random);
    double bound = LengthOf(values);
    for (int period = 1; period <= 5; ++period) {
      for (const Pattern::Round& round : pattern.rounds) Average(round, values);
      bound *= consensus->sigma2;
      ASSERT_LE(LengthOf(values), bound * (1 + 1e-6) + 1e-12) << seed;
    }
  }
  EXPECT_GT(connected, 1000);
}

}  // namespace
}  // namespace syncopate::plan
