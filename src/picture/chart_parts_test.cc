#include "picture/chart_parts.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncopate::picture {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(ChartPartsTest, TicksAreRoundAndEncloseTheRange) {
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

TEST(ChartPartsTest, LegendsBreakTheirLine) {
  const Legend legend = {{"first", "#111"}, {"second", "#222"}};
  SvgPicture wide, narrow;
  const double one_line = Draw(legend, 10, 20, {}, wide);
  EXPECT_GT(Draw(legend, 10, 20, {.width = 0.8 * WidthOf(legend)}, narrow), one_line);
  EXPECT_THAT(wide.Finish(1, 1), Not(HasSubstr("x='10.0' y='40.0'")));
  EXPECT_THAT(narrow.Finish(1, 1), HasSubstr("x='10.0' y='40.0'"));
}

}  // namespace
}  // namespace syncopate::picture
