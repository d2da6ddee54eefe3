#include "tools/doctor/memory_bandwidth.h"

#include "gtest/gtest.h"

namespace syncopate::tools {
namespace {

TEST(MemoryBandwidthTest, MeasuresSomething) {
  EXPECT_GT(MeasureCopyBytesPerSecond(MonotonicClock(), 2, 8 << 20, 1'000'000), 0);
}

TEST(MemoryBandwidthTest, SaysNothingWithoutMemory) {
  EXPECT_EQ(MeasureCopyBytesPerSecond(MonotonicClock(), 2, 4096, 1'000'000), 0);
  EXPECT_EQ(MeasureCopyBytesPerSecond(MonotonicClock(), 2, uint64_t{1} << 60, 1'000'000), 0);
}

}  // namespace
}  // namespace syncopate::tools
