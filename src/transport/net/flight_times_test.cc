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

TEST(FlightTimesTest, TellsByTheClockOfTheTransportWhatCameInEachSlot) {
  constexpr int64_t kSlot = Traffic::kSlotNs;
  constexpr int64_t kOther = 5'000 * kSlot;  // the transport's clock less that of arrivals
  FlightTimes times;
  times.Arrived(0, 0, 0, kOther);
  // In flight from the middle of slot 2 to the middle of slot 4, and looked at 3 ms later; then at once.
  times.Arrived(5 * kSlot / 2, 9 * kSlot / 2, 4000, kOther + 9 * kSlot / 2 + 3 * kFlightMs);
  times.Arrived(6 * kSlot, 6 * kSlot + kFlightMs, 500, kOther + 6 * kSlot + kFlightMs);
  const Traffic traffic = times.Take();
  EXPECT_EQ(traffic.begin_ns, kOther + 2 * kSlot);
  ASSERT_EQ(traffic.slots.size(), 5u);
  EXPECT_EQ(traffic.slots[0].bytes, 1000u);
  EXPECT_EQ(traffic.slots[1].bytes, 2000u);
  EXPECT_EQ(traffic.slots[2].bytes, 1000u);
  EXPECT_EQ(traffic.slots[3].bytes, 0u);
  EXPECT_EQ(traffic.slots[4].bytes, 500u);
  EXPECT_EQ(traffic.slots[0].busy_ns, kSlot / 2);
  EXPECT_EQ(traffic.slots[1].busy_ns, kSlot);
  EXPECT_EQ(traffic.slots[4].busy_ns, kFlightMs);
  EXPECT_TRUE(times.Take().slots.empty());
}

TEST(FlightTimesTest, WhatCameInAVeryLongTimeHasItsLimit) {
  FlightTimes times;
  times.Arrived(0, 0, 0, 0);
  times.Arrived(0, 1000 * Traffic::kSlotNs, 1 << 20, 1000 * Traffic::kSlotNs);
  times.Arrived(0, 5000 * Traffic::kSlotNs, 1 << 20, 5000 * Traffic::kSlotNs);
  EXPECT_LE(times.Take().slots.size(), Traffic::kSlotsMax);
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
