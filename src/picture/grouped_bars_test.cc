#include "picture/grouped_bars.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "picture/picture_testing.h"

namespace syncopate::picture {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

BarChart Chart() {
  BarChart chart;
  chart.title = std::string("a <chart> & more");
  chart.unit = std::string("ms");
  chart.series = {"forest", "ring"};
  chart.panels = {{"one", {{"2x4", {1, 4}, "4x"}, {"4x4", {2, 3}, ""}}},
                  {"two", {{"8x4", {0, 0}, ""}}}};
  return chart;
}

TEST(BarsTest, OneBarForEachValueAndOneBoxForEachSeries) {
  const std::string svg = BarsToSvg({Chart()});
  EXPECT_EQ(CountOf(svg, "<title>"), 6u);
  EXPECT_EQ(CountOf(svg, "width='11.0'"), 2u);
  EXPECT_EQ(svg.find("<svg "), 0u);
  EXPECT_EQ(svg.substr(svg.size() - 7), "</svg>\n");
}

TEST(BarsTest, HeightsAreInProportion) {
  const std::string svg = BarsToSvg({Chart()});
  EXPECT_THAT(svg, HasSubstr("height='170.0' fill='#e07b39'><title>ring 4 ms"));
  EXPECT_THAT(svg, HasSubstr("height='42.5' fill='#1b6ca8'><title>forest 1 ms"));
  EXPECT_THAT(svg, HasSubstr("height='0.0' fill='#1b6ca8'><title>forest 0 ms"));
}

TEST(BarsTest, TextIsEscapedAndNumbersAreNumbers) {
  const std::string svg = BarsToSvg({Chart(), Chart()});
  EXPECT_THAT(svg, HasSubstr("a &lt;chart&gt; &amp; more"));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, Not(HasSubstr("inf")));
}

TEST(BarsTest, NothingToDraw) {
  EXPECT_THAT(BarsToSvg({}), HasSubstr("</svg>"));
  EXPECT_THAT(BarsToSvg({BarChart()}), HasSubstr("</svg>"));
}

}  // namespace
}  // namespace syncopate::picture
