#include "transport/net/flight_times.h"

#include <cstdint>
#include <limits>

#include "gtest/gtest.h"

namespace syncopate::transport::net {
namespace {

constexpr int64_t kMs = 1'000'000;
// The clock of the receiver less that of the sender.
constexpr int64_t kApart = -7'000'000'000 * kMs;

TEST(FlightTimesTest, CountsWhatTakesLongerThanTheQuickest) {
  FlightTimes times;
  times.Arrived(0, kApart + 2 * kMs, 0);             // the way itself
  times.Arrived(10 * kMs, kApart + 15 * kMs, 1000);  // 3 ms more
  times.Arrived(30 * kMs, kApart + 33 * kMs, 500);   // 1 ms more
  const Traffic traffic = times.Take();
  EXPECT_EQ(traffic.bytes, 1500u);
  EXPECT_EQ(traffic.busy_ns, 4 * kMs);
}

TEST(FlightTimesTest, FramesThatAreOnTheirWayTogetherCountOnce) {
  FlightTimes times;
  times.Arrived(0, kApart, 0);
  times.Arrived(10 * kMs, kApart + 14 * kMs, 1000);
  times.Arrived(10 * kMs, kApart + 18 * kMs, 1000);
  times.Arrived(12 * kMs, kApart + 20 * kMs, 1000);
  EXPECT_EQ(times.Take().busy_ns, 10 * kMs);
}

TEST(FlightTimesTest, TakingBeginsAnew) {
  FlightTimes times;
  times.Arrived(0, kApart, 0);
  times.Arrived(10 * kMs, kApart + 14 * kMs, 1000);
  EXPECT_EQ(times.Take().busy_ns, 4 * kMs);
  EXPECT_EQ(times.Take().bytes, 0u);
  times.Arrived(20 * kMs, kApart + 23 * kMs, 1000);  // the quickest of before still counts
  EXPECT_EQ(times.Take().busy_ns, 3 * kMs);
}

TEST(FlightTimesTest, ClocksThatDriftAreFollowed) {
  FlightTimes times;
  int64_t drift = 0;
  for (int i = 1; i <= 1000; ++i) {
    drift += 5 * kMs / 100;  // 50 us in 100 ms
    times.Arrived(i * 100 * kMs, kApart + i * 100 * kMs + drift, 0);
    times.Arrived(i * 100 * kMs + 10 * kMs, kApart + i * 100 * kMs + drift + 20 * kMs, 1000);
    const Traffic traffic = times.Take();
    EXPECT_NEAR(static_cast<double>(traffic.busy_ns), 10.0 * kMs, 1.0 * kMs);
  }
}

TEST(FlightTimesTest, SenselessTimesAreLeftOut) {
  FlightTimes times;
  times.Arrived(0, kMs, 10);
  times.Arrived(std::numeric_limits<int64_t>::max(), 2 * kMs, 10);
  times.Arrived(std::numeric_limits<int64_t>::min(), 3 * kMs, 10);
  const Traffic traffic = times.Take();
  EXPECT_EQ(traffic.bytes, 10u);
  EXPECT_EQ(traffic.busy_ns, 0);
}

}  // namespace
}  // namespace syncopate::transport::net
