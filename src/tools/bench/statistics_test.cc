#include "tools/bench/statistics.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncopate::tools::bench {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

TEST(QuantileTest, InterpolatesBetweenSamples) {
  EXPECT_DOUBLE_EQ(Quantile({5}, 0.5), 5);
  EXPECT_DOUBLE_EQ(Quantile({5}, 0.99), 5);
  EXPECT_DOUBLE_EQ(Quantile({30, 10, 20}, 0.5), 20);
  EXPECT_DOUBLE_EQ(Quantile({40, 10, 20, 30}, 0.5), 25);
  EXPECT_DOUBLE_EQ(Quantile({0, 100}, 0.99), 99);
  EXPECT_DOUBLE_EQ(Quantile({1, 2, 3}, 1), 3);
}

TEST(BusFactorTest, IsWhatNcclTestsDefines) {
  EXPECT_DOUBLE_EQ(BusFactor(Collective::kAllReduce, 4), 1.5);
  EXPECT_DOUBLE_EQ(BusFactor(Collective::kAllGather, 4), 0.75);
  EXPECT_DOUBLE_EQ(BusFactor(Collective::kReduceScatter, 4), 0.75);
  EXPECT_DOUBLE_EQ(BusFactor(Collective::kAllToAll, 4), 0.75);
  EXPECT_DOUBLE_EQ(BusFactor(Collective::kBroadcast, 4), 1);
  EXPECT_DOUBLE_EQ(BusFactor(Collective::kReduce, 4), 1);
  EXPECT_DOUBLE_EQ(BusFactor(Collective::kAllReduce, 1), 0);
}

TEST(OverRanksTest, IsTheMeanWhereRanksKeepStepAndTheMaximumWhereTheyDoNot) {
  const std::vector<RankResult> ranks = {{0, {1000, 3000}}, {0, {3000, 5000}}, {0, {}}};
  EXPECT_THAT(*OverRanks(Collective::kAllReduce, ranks), ElementsAre(2, 4));
  EXPECT_THAT(*OverRanks(Collective::kBroadcast, ranks), ElementsAre(3, 5));
}

TEST(OverRanksTest, RefusesUnequalOrNoSamples) {
  EXPECT_FALSE(OverRanks(Collective::kAllReduce, {{0, {1000}}, {0, {1000, 2000}}}).ok());
  EXPECT_FALSE(OverRanks(Collective::kAllReduce, {{0, {}}}).ok());
  EXPECT_THAT(*OverRanks(Collective::kAllReduce, {{0, {0}}}), ElementsAre(DoubleNear(1e-3, 1e-9)));
}

TEST(RowsTest, RatiosAreAgainstOursWithTheirSpreadOverRounds) {
  BenchOptions options;
  options.workers = 4;
  const std::vector<Measurement> measurements = {
      {"syncopate", {{100, 100}, {200, 200}}, 0},
      {"openmpi", {{400, 400}, {600, 600}}, 2},
  };
  const std::vector<Row> rows = RowsOf(options, 1'000'000, measurements);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_DOUBLE_EQ(rows[0].p50_us, 150);
  EXPECT_DOUBLE_EQ(rows[0].mean_us, 150);
  EXPECT_FALSE(rows[0].ratio.has_value());
  EXPECT_EQ(rows[0].count, 250'000u);
  EXPECT_EQ(rows[0].rounds, 2);
  EXPECT_DOUBLE_EQ(rows[1].p50_us, 500);
  EXPECT_DOUBLE_EQ(rows[1].algbw_gbps, 2);  // 1 MB in 500 us
  EXPECT_DOUBLE_EQ(rows[1].busbw_gbps, 3);
  EXPECT_EQ(rows[1].wrong, 2u);
  ASSERT_TRUE(rows[1].ratio.has_value());
  EXPECT_DOUBLE_EQ(rows[1].ratio->p50, 500.0 / 150);
  EXPECT_DOUBLE_EQ(rows[1].ratio->min, 3);
  EXPECT_DOUBLE_EQ(rows[1].ratio->max, 4);
}

TEST(RowsTest, WithoutOursThereAreNoRatiosAndWithoutChecksNoVerdict) {
  BenchOptions options;
  options.check = 0;
  options.collective = Collective::kAllGather;
  const std::vector<Row> rows = RowsOf(options, 64, {{"gloo", {{1}}, 0}, {"mpich", {}, 0}});
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_FALSE(rows[0].ratio.has_value());
  EXPECT_FALSE(rows[0].wrong.has_value());
  EXPECT_EQ(rows[0].count, 4u);  // of one of four blocks
}

TEST(IterationsTest, FillsARoundWithinBounds) {
  EXPECT_EQ(IterationsFor(100), 1000);
  EXPECT_EQ(IterationsFor(1e9), kRoundIterationsMin);
  EXPECT_EQ(IterationsFor(1e-3), kRoundIterationsMax);
}

}  // namespace
}  // namespace syncopate::tools::bench
