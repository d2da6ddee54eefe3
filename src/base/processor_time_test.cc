#include "base/processor_time.h"

#include <string>

#include "gtest/gtest.h"

namespace syncopate {
namespace {

TEST(ProcessorTimeTest, FirstLineIsTheSumOfAllProcessors) {
  const absl::StatusOr<ProcessorTime> time = ParseProcessorTime(
      "cpu  1000 200 300 4000 50 6 70 80 900 90\n"
      "cpu0 500 100 150 2000 25 3 35 79 450 45\n"
      "intr 12345 0 9\n");
  ASSERT_TRUE(time.ok()) << time.status();
  EXPECT_EQ(time->stolen, 80u);
  EXPECT_EQ(time->idle, 4050u) << "waiting for disks is idle, too";
  EXPECT_EQ(time->total, 5706u) << "guest time is part of user time and counts once";
}

TEST(ProcessorTimeTest, OldKernelsKnowNoStolenTime) {
  const absl::StatusOr<ProcessorTime> time = ParseProcessorTime("cpu 1 2 3 4");
  ASSERT_TRUE(time.ok()) << time.status();
  EXPECT_EQ(time->stolen, 0u);
  EXPECT_EQ(time->total, 10u);
}

TEST(ProcessorTimeTest, RefusesOtherText) {
  const std::string endless = "cpu " + std::string(10'000, '1');
  for (const std::string& bad :
       {std::string(), std::string("\n"), std::string("cpu"), std::string("cpu 1 2 3"),
        std::string("cpu0 1 2 3 4 5 6 7 8"), std::string("cpu 1 2 3 4 5 6 7 -8"),
        std::string("cpu 1 2 x 4 5 6 7 8"), std::string("cpu 99999999999999999999 2 3 4 5 6 7 8"),
        std::string("intr 5\ncpu 1 2 3 4 5 6 7 8"), endless}) {
    EXPECT_FALSE(ParseProcessorTime(bad).ok()) << bad;
  }
}

ProcessorTime Stolen(uint64_t total, uint64_t stolen) {
  return {.total = total, .idle = 0, .stolen = stolen};
}

TEST(ProcessorTimeTest, BusyIsWhatIsNotIdle) {
  const auto at = [](uint64_t total, uint64_t idle) {
    return ProcessorTime{.total = total, .idle = idle, .stolen = 0};
  };
  EXPECT_DOUBLE_EQ(BusyShare(at(1000, 100), at(1200, 150)), 0.75);
  EXPECT_EQ(BusyShare(at(1000, 100), at(1200, 100)), 1);
  EXPECT_EQ(BusyShare(at(1000, 100), at(1200, 300)), 0);
  EXPECT_EQ(BusyShare(at(1000, 100), at(1000, 100)), 0) << "no time has passed";
}

TEST(ProcessorTimeTest, ShareOfWhatPassed) {
  EXPECT_DOUBLE_EQ(StolenShare(Stolen(1000, 10), Stolen(1100, 35)), 0.25);
  EXPECT_EQ(StolenShare(Stolen(1000, 10), Stolen(1100, 10)), 0);
  EXPECT_EQ(StolenShare(Stolen(1000, 10), Stolen(1000, 10)), 0) << "no time has passed";
  EXPECT_EQ(StolenShare(Stolen(1000, 10), Stolen(900, 20)), 0)
      << "waiting for disks may count backwards";
  EXPECT_EQ(StolenShare(Stolen(1000, 10), Stolen(1100, 5)), 0);
  EXPECT_EQ(StolenShare(Stolen(1000, 10), Stolen(1010, 40)), 1);
}

TEST(ProcessorTimeTest, ThisHostHasOne) {
  const absl::StatusOr<ProcessorTime> time = ReadProcessorTime();
  ASSERT_TRUE(time.ok()) << time.status();
  EXPECT_GT(time->total, 0u);
  EXPECT_LE(time->stolen, time->total);
}

}  // namespace
}  // namespace syncopate
