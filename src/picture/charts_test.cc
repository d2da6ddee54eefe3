#include "picture/charts.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncopate::picture {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(ChartsTest, NumbersThatAreNoneAreLeftOut) {
  LineChart chart;
  chart.series = {{"a", Ink::Class("c-compute"), {{0, NAN}, {1, INFINITY}, {2, 5}, {3, 4}}, true}};
  const std::string svg = Draw(chart);
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, Not(HasSubstr("inf")));
  EXPECT_THAT(svg, HasSubstr("<circle"));
  chart.series[0].points.pop_back();
  EXPECT_EQ(Draw(chart), "");  // one dot
  EXPECT_EQ(Draw(Histogram()), "");
  EXPECT_EQ(Draw(StackedBars()), "");
}

TEST(ChartsTest, ADotBesideACurveIsShown) {
  LineChart chart;
  chart.series = {{"a", Ink::Class("c-compute"), {{0, 1}, {1, 2}}, false},
                  {"b", Ink::Class("c-network"), {{1, 3}}, true}};
  EXPECT_THAT(Draw(chart), HasSubstr("<title>b: 3 at 1</title>"));
}

TEST(ChartsTest, FiguresInABarAddUpToTheOneBehindIt) {
  StackedBars bars;
  bars.unit = "ms";
  bars.parts = {{"a", Ink("red")}, {"b", Ink("green")}, {"c", Ink("blue")}};
  // Rounded one by one these are 3 times 12.35 of 37.04.
  bars.rows = {{"x", {12.346, 12.346, 12.346}}};
  const std::string svg = Draw(bars);
  EXPECT_THAT(svg, HasSubstr(">37.04</text>"));
  EXPECT_THAT(svg, HasSubstr("x, a: 12.35 ms"));
  EXPECT_THAT(svg, HasSubstr("x, b: 12.35 ms"));
  EXPECT_THAT(svg, HasSubstr("x, c: 12.34 ms"));
}

}  // namespace
}  // namespace syncopate::picture
