#include "base/figures.h"

#include <cmath>
#include <numeric>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncopate {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

TEST(FiguresTest, OneHasNoPlural) {
  EXPECT_EQ(CountOf(1, "switch", "switches"), "1 switch");
  EXPECT_EQ(CountOf(0, "switch", "switches"), "0 switches");
  EXPECT_EQ(CountOf(12, "link"), "12 links");
  EXPECT_EQ(CountOf(1, "link"), "1 link");
}

TEST(FiguresTest, ZeroHasNoMinusSign) {
  EXPECT_EQ(Fixed(-0.04, 1), "0.0");
  EXPECT_EQ(Fixed(-0.0, 0), "0");
  EXPECT_EQ(Fixed(-0.06, 1), "-0.1");
  EXPECT_EQ(Fixed(-10, 2), "-10.00");
  EXPECT_EQ(Fixed(-INFINITY, 1), "-inf");
  EXPECT_EQ(FixedSigned(-0.04, 1), "+0.0");
  EXPECT_EQ(FixedSigned(0.25, 1), "+0.2");
  EXPECT_EQ(FixedSigned(-1.5, 1), "-1.5");
}

TEST(FiguresTest, RoundedPartsAddUpToTheRoundedWhole) {
  // One by one, these would be 0.4 + 0.4 + 0.4 of 1.1.
  EXPECT_THAT(RoundedParts({0.36, 0.37, 0.38}, 1),
              ElementsAre(DoubleNear(0.3, 1e-12), DoubleNear(0.4, 1e-12), DoubleNear(0.4, 1e-12)));
  EXPECT_THAT(RoundedParts({-1, NAN, 2.5}, 0), ElementsAre(0, 0, 3));
  EXPECT_THAT(RoundedParts({}, 2), ElementsAre());
  std::mt19937_64 random(5);
  for (int round = 0; round < 1000; ++round) {
    std::vector<double> parts;
    for (int i = 0; i < 6; ++i) parts.push_back(static_cast<double>(random() % 1'000'000) * 1e-4);
    const std::vector<double> rounded = RoundedParts(parts, 2);
    const double sum = std::accumulate(parts.begin(), parts.end(), 0.0);
    ASSERT_NEAR(std::accumulate(rounded.begin(), rounded.end(), 0.0), sum, 0.005 + 1e-9) << round;
    for (size_t i = 0; i < parts.size(); ++i) {
      ASSERT_NEAR(rounded[i], parts[i], 0.01 + 1e-9) << round;
    }
  }
}

}  // namespace
}  // namespace syncopate
