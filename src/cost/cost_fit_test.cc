#include "cost/cost_fit.h"

#include <cmath>

#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncopate::cost {
namespace {

using ::testing::DoubleNear;
using ::testing::HasSubstr;

const CommunicationCosts kTrue{
    .a = 8e-4, .b = 2.5e-8, .gamma = {1, 1.4, 2.1, 3.3}, .source = "true"};

double TrueSeconds(uint64_t bytes, int at_once) {
  return kTrue.a + kTrue.Gamma(at_once) * kTrue.b * static_cast<double>(bytes);
}

std::vector<CostPoint> Points(double noise, uint64_t seed) {
  Random random(seed);
  std::vector<CostPoint> points;
  for (int at_once = 1; at_once <= 4; ++at_once) {
    for (uint64_t bytes = at_once == 1 ? 1024 : 65536; bytes <= (1 << 20); bytes *= 4) {
      const double error = 1 + noise * (2 * random.Unit() - 1);
      points.push_back({bytes, at_once, TrueSeconds(bytes, at_once) * error});
    }
  }
  return points;
}

// Training ended with an error when bytes seemed to cost next to nothing: gamma was too large to be valid.
TEST(CostFitTest, BytesThatSeemToCostNothingGiveCostsThatAreValid) {
  for (const double growth : {0.0, 1e-15, 1e-12, 1e-9, 1e-6, 1e-3}) {
    const auto fit = FitCosts(std::vector<CostPoint>{
        {1024, 1, 1e-4}, {1 << 20, 1, 1e-4 * (1 + growth)}, {65536, 2, 5e-4}, {1 << 20, 2, 9e-4}});
    ASSERT_TRUE(fit.ok()) << fit.status();
    EXPECT_TRUE(Validate(fit->costs).ok()) << growth << ": " << Validate(fit->costs);
  }
}

TEST(CostFitTest, GivesBackTheCostsOfExactPoints) {
  const auto fit = FitCosts(Points(0, 1));
  ASSERT_TRUE(fit.ok()) << fit.status();
  EXPECT_NEAR(fit->costs.a, kTrue.a, 1e-9);
  EXPECT_NEAR(fit->costs.b, kTrue.b, 1e-13);
  ASSERT_EQ(fit->costs.gamma.size(), 4u);
  for (size_t k = 0; k < 4; ++k) EXPECT_NEAR(fit->costs.gamma[k], kTrue.gamma[k], 1e-6);
  EXPECT_LT(fit->ResidualMax(), 1e-6);
  EXPECT_TRUE(Validate(fit->costs).ok());
}

TEST(CostFitTest, NoiseOfTenPercentLeavesTheCostsWithinTen) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(seed);
    const auto fit = FitCosts(Points(0.1, seed));
    ASSERT_TRUE(fit.ok()) << fit.status();
    EXPECT_NEAR(fit->costs.a, kTrue.a, 0.1 * kTrue.a);
    EXPECT_NEAR(fit->costs.b, kTrue.b, 0.1 * kTrue.b);
    for (size_t k = 1; k < 4; ++k) {
      EXPECT_NEAR(fit->costs.gamma[k], kTrue.gamma[k], 0.2 * kTrue.gamma[k]);
    }
    EXPECT_LT(fit->ResidualMax(), 0.25);
  }
}

TEST(CostFitTest, OnePointThatWasDisturbedChangesLittleAndShows) {
  std::vector<CostPoint> points = Points(0.01, 3);
  points[2].seconds *= 5;  // 16 KiB
  const auto fit = FitCosts(points);
  ASSERT_TRUE(fit.ok()) << fit.status();
  EXPECT_NEAR(fit->costs.a, kTrue.a, 0.1 * kTrue.a);
  EXPECT_NEAR(fit->costs.b, kTrue.b, 0.1 * kTrue.b);
  EXPECT_GT(fit->Residual(2), 3);
}

TEST(CostFitTest, AFullNetworkHasGammaK) {
  std::vector<CostPoint> points = Points(0, 1);
  for (CostPoint& point : points) {
    point.seconds = kTrue.a + kTrue.b * static_cast<double>(point.bytes) * point.at_once;
  }
  const auto fit = FitCosts(points);
  ASSERT_TRUE(fit.ok()) << fit.status();
  for (size_t k = 0; k < 4; ++k) {
    EXPECT_NEAR(fit->costs.gamma[k], static_cast<double>(k + 1), 1e-6);
  }
}

// Tiny transfers at once cost their start-ups, however they add up.
TEST(CostFitTest, GammaIsToldByBytesNotByStartUps) {
  std::vector<CostPoint> points = Points(0, 1);
  const CostFit without = FitCosts(points).value();
  for (const int k : {2, 3, 4}) points.push_back({64, k, 3 * kTrue.a});
  const CostFit with = FitCosts(points).value();
  for (size_t k = 0; k < 4; ++k) EXPECT_EQ(with.costs.gamma[k], without.costs.gamma[k]) << k;
  // Better than nothing where there is nothing else.
  std::erase_if(points, [](const CostPoint& point) { return point.at_once > 1; });
  points.push_back({64, 2, 2 * kTrue.a});
  EXPECT_GT(FitCosts(points).value().costs.gamma[1], 1);
}

TEST(CostFitTest, AMissingNumberAtOnceLiesBetweenItsNeighbours) {
  std::vector<CostPoint> points = Points(0, 1);
  std::erase_if(points, [](const CostPoint& point) { return point.at_once == 3; });
  const auto fit = FitCosts(points);
  ASSERT_TRUE(fit.ok()) << fit.status();
  EXPECT_THAT(fit->costs.gamma[2], DoubleNear((1.4 + 3.3) / 2, 1e-6));
}

TEST(CostFitTest, NothingIsNegativeAndGammaRises) {
  // The time falls with the size at first; two at once seem quicker than one.
  const auto fit =
      FitCosts({{1024, 1, 5e-3}, {4096, 1, 1e-3}, {16384, 1, 0.9e-3}, {16384, 2, 0.5e-3}});
  ASSERT_TRUE(fit.ok()) << fit.status();
  EXPECT_TRUE(Validate(fit->costs).ok()) << Validate(fit->costs);
  const auto steep = FitCosts({{1024, 1, 1e-6}, {1 << 20, 1, 1}, {1 << 22, 1, 20}});
  ASSERT_TRUE(steep.ok()) << steep.status();
  EXPECT_TRUE(Validate(steep->costs).ok()) << Validate(steep->costs);
  EXPECT_EQ(steep->costs.a, 0.5e-6);
}

TEST(CostFitTest, RefusesWhatCannotBe) {
  EXPECT_THAT(FitCosts({}).status().message(), HasSubstr("two sizes"));
  EXPECT_THAT(FitCosts({{1024, 1, 1}, {1024, 1, 1}}).status().message(), HasSubstr("two sizes"));
  EXPECT_THAT(FitCosts({{1024, 1, 1}, {2048, 1, 0}}).status().message(), HasSubstr("2048 bytes"));
  EXPECT_THAT(FitCosts({{1024, 1, 1}, {2048, 0, 1}}).status().message(), HasSubstr("at once"));
}

}  // namespace
}  // namespace syncopate::cost
