#include "base/wait_notice.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncopate {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

TEST(WaitNoticeTest, ComesAfterSomeSecondsAndThenMoreRarely) {
  const int64_t begin_ns = 1000 * kSecond;
  WaitNotice notice(begin_ns);
  std::vector<int> seconds;
  for (int64_t now_ns = begin_ns; now_ns <= begin_ns + 250 * kSecond; now_ns += kSecond) {
    EXPECT_GT(notice.next_ns(), now_ns - kSecond);
    if (notice.Due(now_ns)) seconds.push_back(static_cast<int>((now_ns - begin_ns) / kSecond));
  }
  EXPECT_THAT(seconds, ::testing::ElementsAre(4, 12, 28, 60, 120, 180, 240));
}

TEST(WaitNoticeTest, DoesNotCatchUpOnWhatWasMissed) {
  WaitNotice notice(0);
  EXPECT_TRUE(notice.Due(100 * kSecond));
  EXPECT_FALSE(notice.Due(107 * kSecond));
  EXPECT_TRUE(notice.Due(108 * kSecond));
}

}  // namespace
}  // namespace syncopate
