#include "base/median.h"

#include <cstdint>

#include "gtest/gtest.h"

namespace syncopate {
namespace {

TEST(MedianOfTest, IsTheValueInTheMiddle) {
  EXPECT_EQ(MedianOf<double>({3}), 3);
  EXPECT_EQ(MedianOf<double>({9, 1, 5}), 5);
  EXPECT_EQ(MedianOf<int64_t>({7, -2, 7, 100, 7}), 7);
}

TEST(MedianOfTest, OfAnEvenNumberIsTheUpperOne) {
  EXPECT_EQ(MedianOf<double>({2, 1}), 2);
  EXPECT_EQ(MedianOf<int64_t>({4, 1, 3, 2}), 3);
}

TEST(MedianOfTest, ItsArgumentStaysAsItWas) {
  const std::vector<double> values = {3, 1, 2};
  EXPECT_EQ(MedianOf(values), 2);
  EXPECT_EQ(values, (std::vector<double>{3, 1, 2}));
}

}  // namespace
}  // namespace syncopate
