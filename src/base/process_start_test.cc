#include "base/process_start.h"

#include "base/clock.h"
#include "gtest/gtest.h"

namespace syncopate {
namespace {

TEST(ProcessStartTest, TheNameOfTheProgramMayHoldAnything) {
  EXPECT_EQ(
      *ParseStartTicks("7 (a) b (c 1 2) S 1 7 7 0 -1 4 5 6 7 8 9 10 11 12 20 0 1 0 4321 99 1"),
      4321u);
  EXPECT_FALSE(ParseStartTicks("7 (a) S 1 7").ok());
  EXPECT_FALSE(ParseStartTicks("").ok());
}

TEST(ProcessStartTest, ThisProcessStartedBeforeNow) {
  const int64_t start_ns = ProcessStartNs();
  EXPECT_LE(start_ns, MonotonicClock().NowNs());
  // The moment does not move while the process runs, but for the ticks of the kernel's clock.
  const int64_t later_ns = ProcessStartNs();
  EXPECT_NEAR(static_cast<double>(start_ns), static_cast<double>(later_ns), 20e6);
}

}  // namespace
}  // namespace syncopate
