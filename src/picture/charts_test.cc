#include "picture/charts.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncopate::picture {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(ChartsTest, TicksAreRoundAndEncloseTheRange) {
  EXPECT_EQ(Ticks(0, 10, 5), (std::vector<double>{0, 2, 4, 6, 8, 10}));
  for (const auto& [lo, hi] : std::vector<std::pair<double, double>>{
           {0, 0}, {3, 3}, {-5, 17}, {0.97, 0.99}, {0, 1e300}, {-1e308, 1e308}, {1e-20, 2e-20}}) {
    const std::vector<double> ticks = Ticks(lo, hi, 5);
    ASSERT_GE(ticks.size(), 2u);
    ASSERT_LE(ticks.size(), 13u);
    for (size_t i = 1; i < ticks.size(); ++i) EXPECT_GT(ticks[i], ticks[i - 1]);
    if (std::abs(hi) < 1e299) {
      EXPECT_LE(ticks.front(), lo + std::abs(lo) * 1e-5);
      EXPECT_GE(ticks.back(), hi - std::abs(hi) * 1e-5);
    }
  }
  EXPECT_EQ(Ticks(std::nan(""), 1, 5).size(), 2u);
}

TEST(ChartsTest, NumbersThatAreNoneAreLeftOut) {
  LineChart chart;
  chart.series = {{"a", Ink::Class("c-compute"), {{0, NAN}, {1, INFINITY}, {2, 5}}, true}};
  const std::string svg = Draw(chart);
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, Not(HasSubstr("inf")));
  EXPECT_THAT(svg, HasSubstr("<circle"));
  chart.series[0].points.pop_back();
  EXPECT_EQ(Draw(chart), "");
  EXPECT_EQ(Draw(Histogram()), "");
  EXPECT_EQ(Draw(StackedBars()), "");
}

}  // namespace
}  // namespace syncopate::picture
