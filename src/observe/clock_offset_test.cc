#include "observe/clock_offset.h"

#include <cstdlib>
#include <random>

#include "gtest/gtest.h"

namespace syncopate::observe {
namespace {

TEST(ClockOffsetTest, ASymmetricExchangeIsExact) {
  // Rank 0 is 1000 ahead; 50 each way, 7 at rank 0.
  const auto offset = EstimateClockOffset({{100, 1'150, 1'157, 207}});
  ASSERT_TRUE(offset.ok());
  EXPECT_EQ(offset->offset_ns, 1'000);
  EXPECT_EQ(offset->error_ns, 50);
}

TEST(ClockOffsetTest, TheShortestWayWins) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 200; ++round) {
    const int64_t truth = static_cast<int64_t>(random() % 2'000'000) - 1'000'000;
    int64_t now = 50'000'000, shortest = 1'000'000'000;
    std::vector<ClockExchange> exchanges;
    for (int i = 0; i < 20; ++i) {
      const int64_t there = 10'000 + static_cast<int64_t>(random() % 90'000);
      const int64_t back = 10'000 + static_cast<int64_t>(random() % 90'000);
      const int64_t received = now + there + truth;
      exchanges.push_back({now, received, received + 500, now + there + 500 + back});
      now += 300'000;
      shortest = std::min(shortest, there + back);
    }
    const auto offset = EstimateClockOffset(exchanges);
    ASSERT_TRUE(offset.ok());
    EXPECT_EQ(offset->error_ns, (shortest + 1) / 2);
    EXPECT_LE(std::abs(offset->offset_ns - truth), offset->error_ns);
  }
}

TEST(ClockOffsetTest, ImpossibleExchangesAreSkipped) {
  EXPECT_FALSE(EstimateClockOffset({}).ok());
  const ClockExchange back_in_time{100, 50, 60, 90};
  const ClockExchange longer_there_than_away{100, 50, 80, 110};
  const ClockExchange absurd{-1, INT64_MIN, INT64_MAX, INT64_MAX};
  EXPECT_FALSE(EstimateClockOffset({back_in_time, longer_there_than_away, absurd}).ok());
  EXPECT_TRUE(EstimateClockOffset({absurd, {100, 150, 150, 200}}).ok());
}

}  // namespace
}  // namespace syncopate::observe
