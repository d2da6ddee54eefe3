#include "transport/sentry_pause.h"

#include <string>

#include "base/log.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncopate::transport {
namespace {

constexpr int64_t kMs = 1'000'000;

TEST(SentryPauseTest, OneThatIsInTimeHasNone) {
  SentryPause pause;
  pause.Acts(1000 * kMs, 1100 * kMs);
  pause.Acts(1050 * kMs, 1150 * kMs);
  pause.Acts(1150 * kMs, 1250 * kMs);
  EXPECT_EQ(pause.longest_ns(), 0);
}

TEST(SentryPauseTest, TheLongestIsKept) {
  SentryPause pause;
  pause.Acts(1000 * kMs, 1100 * kMs);
  pause.Acts(1170 * kMs, 1270 * kMs);
  pause.Acts(1300 * kMs, 1400 * kMs);
  EXPECT_EQ(pause.longest_ns(), 70 * kMs);
}

TEST(SentryPauseTest, LongOnesAreInTheLog) {
  ASSERT_TRUE(SetUpLog("INFO", "rank 3").ok());
  ::testing::internal::CaptureStderr();
  SentryPause pause;
  pause.Acts(1000 * kMs, 1100 * kMs);
  pause.Acts(1599 * kMs, 1600 * kMs);
  pause.Acts(2100 * kMs, 2200 * kMs);
  const std::string said = ::testing::internal::GetCapturedStderr();
  ASSERT_TRUE(SetUpLog("", "").ok());
  EXPECT_THAT(said, ::testing::EndsWith("[rank 3] info: this worker's sentry was held up for "
                                        "500 ms\n"));
  EXPECT_THAT(said, ::testing::Not(::testing::HasSubstr("499")));
}

}  // namespace
}  // namespace syncopate::transport
