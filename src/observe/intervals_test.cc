#include "observe/intervals.h"

#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace syncopate::observe {
namespace {

TEST(IntervalsTest, MergesWhatTouches) {
  EXPECT_EQ(Merged({{5, 7}, {1, 3}, {3, 4}, {6, 6}, {2, 3}, {9, 8}}), (Intervals{{1, 4}, {5, 7}}));
  EXPECT_EQ(Merged({}), Intervals{});
}

// Every operation against a bitmap, on random sets.
TEST(IntervalsTest, AgreesWithABitmap) {
  constexpr int kMoments = 64;
  std::mt19937 random(7);
  const auto draw = [&] {
    Intervals any;
    for (uint32_t i = random() % 6; i > 0; --i) {
      const int64_t begin = random() % kMoments;
      any.push_back({begin, begin + static_cast<int64_t>(random() % 12)});
    }
    return any;
  };
  const auto bitmap = [&](const Intervals& set) {
    std::vector<bool> bits(kMoments + 12);
    for (const Interval& each : set) {
      for (int64_t t = each.begin; t < each.end; ++t) bits[static_cast<size_t>(t)] = true;
    }
    return bits;
  };
  for (int round = 0; round < 2'000; ++round) {
    const Intervals raw_a = draw(), raw_b = draw();
    const Intervals a = Merged(raw_a), b = Merged(raw_b);
    const auto in_a = bitmap(raw_a), in_b = bitmap(raw_b);
    std::vector<bool> both(in_a.size()), rest(in_a.size());
    int64_t length = 0;
    for (size_t t = 0; t < in_a.size(); ++t) {
      both[t] = in_a[t] && in_b[t];
      rest[t] = in_a[t] && !in_b[t];
      length += in_a[t];
    }
    ASSERT_EQ(bitmap(Intersection(a, b)), both) << round;
    ASSERT_EQ(bitmap(Difference(a, b)), rest) << round;
    ASSERT_EQ(Length(a), length) << round;
    for (const Interval& each : Difference(a, b)) ASSERT_LT(each.begin, each.end);
  }
}

}  // namespace
}  // namespace syncopate::observe
