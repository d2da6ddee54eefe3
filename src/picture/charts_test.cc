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
