#include "launch/heartbeat.h"

#include "gtest/gtest.h"

namespace syncopate::launch {
namespace {

constexpr int64_t kTimeoutNs = 6'000;
constexpr int64_t kIntervalNs = kTimeoutNs / Heartbeat::kBeats;

TEST(HeartbeatTest, BeatsAtItsInterval) {
  Heartbeat heartbeat(kTimeoutNs, 100);
  EXPECT_FALSE(heartbeat.TakeBeat(100 + kIntervalNs - 1));
  EXPECT_EQ(heartbeat.NextNs(), 100 + kIntervalNs);
  EXPECT_TRUE(heartbeat.TakeBeat(100 + kIntervalNs));
  EXPECT_FALSE(heartbeat.TakeBeat(100 + kIntervalNs));
  EXPECT_EQ(heartbeat.NextNs(), 100 + 2 * kIntervalNs);
}

TEST(HeartbeatTest, SilenceIsALossAtItsEndAndNotBefore) {
  Heartbeat heartbeat(kTimeoutNs, 0);
  for (int64_t now_ns = 0; now_ns < 500 + kTimeoutNs; now_ns += kIntervalNs / 2) {
    if (now_ns == 500) heartbeat.Heard(now_ns);
    EXPECT_FALSE(heartbeat.IsLost(now_ns)) << now_ns;
    heartbeat.TakeBeat(now_ns);
    EXPECT_LE(heartbeat.NextNs(), now_ns + kIntervalNs);
  }
  EXPECT_FALSE(heartbeat.IsLost(500 + kTimeoutNs - 1));
  EXPECT_TRUE(heartbeat.IsLost(500 + kTimeoutNs));
}

// What the other side said while this one did not run may lie unread.
TEST(HeartbeatTest, OneThatWasHeldUpGivesTheOtherItsFullTimeAgain) {
  Heartbeat heartbeat(kTimeoutNs, 0);
  EXPECT_FALSE(heartbeat.IsLost(3 * kTimeoutNs));
  int64_t now_ns = 3 * kTimeoutNs;
  for (; now_ns < 4 * kTimeoutNs; now_ns += kIntervalNs) EXPECT_FALSE(heartbeat.IsLost(now_ns));
  EXPECT_TRUE(heartbeat.IsLost(now_ns));
}

}  // namespace
}  // namespace syncopate::launch
