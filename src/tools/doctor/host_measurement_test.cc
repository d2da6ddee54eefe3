#include "tools/doctor/host_measurement.h"

#include "gtest/gtest.h"

namespace syncopate::tools {
namespace {

TEST(HostMeasurementTest, ReductionsHaveABandwidth) {
  for (const int threads : {1, 2, 3}) {
    EXPECT_GT(MeasureFoldBytesPerSecond(MonotonicClock(), threads, 4, 1 << 20, 4'000'000), 0);
  }
}

TEST(HostMeasurementTest, SaysNothingWithoutMemory) {
  EXPECT_EQ(MeasureFoldBytesPerSecond(MonotonicClock(), 2, 4, 16, 1'000'000), 0);
  EXPECT_EQ(MeasureFoldBytesPerSecond(MonotonicClock(), 2, 4, uint64_t{1} << 60, 1'000'000), 0);
  EXPECT_FALSE(MeasureHost(MonotonicClock(), 2, 1 << 20).has_value());
}

TEST(HostMeasurementTest, MeetingsTakeTimeWithACoreForEachAndWithout) {
  EXPECT_GT(MeasureMeetingSeconds(MonotonicClock(), 2, 2, 4'000'000), 0);
  EXPECT_GT(MeasureMeetingSeconds(MonotonicClock(), 5, 2, 4'000'000), 0);
}

TEST(HostMeasurementTest, TheCacheEndsWhereRatesFall) {
  HostCosts costs;
  SetBandwidths({{1 << 20, 400e9}, {4 << 20, 100e9}, {16 << 20, 30e9}, {64 << 20, 10e9}}, costs);
  // Above sqrt(400 * 10) = 63: the first two.
  EXPECT_EQ(costs.cache_bytes, uint64_t{4 << 20});
  EXPECT_NEAR(costs.cached_bandwidth, 200e9, 1);
  EXPECT_DOUBLE_EQ(costs.memory_bandwidth, 10e9);
}

TEST(HostMeasurementTest, WithoutAFallThereIsNoCache) {
  HostCosts costs;
  SetBandwidths({{1 << 20, 10e9}, {64 << 20, 10e9}}, costs);
  EXPECT_EQ(costs.cache_bytes, 0u);
  EXPECT_DOUBLE_EQ(costs.cached_bandwidth, 10e9);
  EXPECT_DOUBLE_EQ(costs.memory_bandwidth, 10e9);
}

}  // namespace
}  // namespace syncopate::tools
