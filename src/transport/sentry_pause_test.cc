#include "transport/sentry_pause.h"

#include <string>

#include "base/log.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncopate::transport {
namespace {

constexpr int64_t kPauseMs = 1'000'000;

TEST(SentryPauseTest, OneThatIsInTimeHasNone) {
  SentryPause pause;
  pause.Acts(1000 * kPauseMs, 1100 * kPauseMs);
  pause.Acts(1050 * kPauseMs, 1150 * kPauseMs);
  pause.Acts(1150 * kPauseMs, 1250 * kPauseMs);
  EXPECT_EQ(pause.longest_ns(), 0);
}

TEST(SentryPauseTest, TheLongestIsKept) {
  SentryPause pause;
  pause.Acts(1000 * kPauseMs, 1100 * kPauseMs);
  pause.Acts(1170 * kPauseMs, 1270 * kPauseMs);
  pause.Acts(1300 * kPauseMs, 1400 * kPauseMs);
  EXPECT_EQ(pause.longest_ns(), 70 * kPauseMs);
}

TEST(SentryPauseTest, LongOnesAreInTheLog) {
  ASSERT_TRUE(SetUpLog("INFO", "rank 3").ok());
  ::testing::internal::CaptureStderr();
  SentryPause pause;
  pause.Acts(1000 * kPauseMs, 1100 * kPauseMs);
  pause.Acts(1599 * kPauseMs, 1600 * kPauseMs);
  pause.Acts(2100 * kPauseMs, 2200 * kPauseMs);
  const std::string said = ::testing::internal::GetCapturedStderr();
  ASSERT_TRUE(SetUpLog("", "").ok());
  EXPECT_THAT(said, ::testing::EndsWith("[rank 3] info: this worker's sentry was held up for "
                                        "500 ms\n"));
  EXPECT_THAT(said, ::testing::Not(::testing::HasSubstr("499")));
}

}  // namespace
}  // namespace syncopate::transport
