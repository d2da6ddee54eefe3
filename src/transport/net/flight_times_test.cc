#include "transport/net/flight_times.h"

#include <cstdint>
#include <limits>

#include "gtest/gtest.h"

namespace syncopate::transport::net {
namespace {

constexpr int64_t kFlightMs = 1'000'000;
// The clock of the receiver less that of the sender.
constexpr int64_t kApart = -7'000'000'000 * kFlightMs;

TEST(FlightTimesTest, CountsWhatTakesLongerThanTheQuickest) {
  FlightTimes times;
  times.Arrived(0, kApart + 2 * kFlightMs, 0);                   // the way itself
  times.Arrived(10 * kFlightMs, kApart + 15 * kFlightMs, 1000);  // 3 ms more
  times.Arrived(30 * kFlightMs, kApart + 33 * kFlightMs, 500);   // 1 ms more
  const Traffic traffic = times.Take();
  EXPECT_EQ(traffic.bytes, 1500u);
  EXPECT_EQ(traffic.busy_ns, 4 * kFlightMs);
}

TEST(FlightTimesTest, FramesThatAreOnTheirWayTogetherCountOnce) {
  FlightTimes times;
  times.Arrived(0, kApart, 0);
  times.Arrived(10 * kFlightMs, kApart + 14 * kFlightMs, 1000);
  times.Arrived(10 * kFlightMs, kApart + 18 * kFlightMs, 1000);
  times.Arrived(12 * kFlightMs, kApart + 20 * kFlightMs, 1000);
  EXPECT_EQ(times.Take().busy_ns, 10 * kFlightMs);
}

TEST(FlightTimesTest, TakingBeginsAnew) {
  FlightTimes times;
  times.Arrived(0, kApart, 0);
  times.Arrived(10 * kFlightMs, kApart + 14 * kFlightMs, 1000);
  EXPECT_EQ(times.Take().busy_ns, 4 * kFlightMs);
  EXPECT_EQ(times.Take().bytes, 0u);
  times.Arrived(20 * kFlightMs, kApart + 23 * kFlightMs,
                1000);  // the quickest of before still counts
  EXPECT_EQ(times.Take().busy_ns, 3 * kFlightMs);
}

TEST(FlightTimesTest, ClocksThatDriftAreFollowed) {
  FlightTimes times;
  int64_t drift = 0;
  for (int i = 1; i <= 1000; ++i) {
    drift += 5 * kFlightMs / 100;  // 50 us in 100 ms
    times.Arrived(i * 100 * kFlightMs, kApart + i * 100 * kFlightMs + drift, 0);
    times.Arrived(i * 100 * kFlightMs + 10 * kFlightMs,
                  kApart + i * 100 * kFlightMs + drift + 20 * kFlightMs, 1000);
    const Traffic traffic = times.Take();
    EXPECT_NEAR(static_cast<double>(traffic.busy_ns), 10.0 * kFlightMs, 1.0 * kFlightMs);
  }
}

TEST(FlightTimesTest, SenselessTimesAreLeftOut) {
  FlightTimes times;
  times.Arrived(0, kFlightMs, 10);
  times.Arrived(std::numeric_limits<int64_t>::max(), 2 * kFlightMs, 10);
  times.Arrived(std::numeric_limits<int64_t>::min(), 3 * kFlightMs, 10);
  const Traffic traffic = times.Take();
  EXPECT_EQ(traffic.bytes, 10u);
  EXPECT_EQ(traffic.busy_ns, 0);
}

}  // namespace
}  // namespace syncopate::transport::net
