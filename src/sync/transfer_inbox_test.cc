#include "sync/transfer_inbox.h"

#include <thread>

#include "gtest/gtest.h"

namespace syncopate::sync {
namespace {

constexpr int64_t kHourNs = 3'600'000'000'000;

// Take() may return with nothing after a while; tests want what comes.
TransferInbox::News TakeSomething(TransferInbox& inbox) {
  for (;;) {
    TransferInbox::News news = inbox.Take();
    if (!news.ended.empty() || news.times_passed > 0 || news.over) return news;
  }
}

TEST(TransferInboxTest, WhatEndedIsTakenOnceAndInOrder) {
  TransferInbox inbox(MonotonicClock());
  inbox.Add({.transfer = 7, .at_ns = 1, .status = absl::OkStatus()});
  inbox.Add({.transfer = 3, .at_ns = 2, .status = absl::UnavailableError("lost")});
  const TransferInbox::News news = TakeSomething(inbox);
  ASSERT_EQ(news.ended.size(), 2u);
  EXPECT_EQ(news.ended[0].transfer, 7);
  EXPECT_EQ(news.ended[1].transfer, 3);
  EXPECT_TRUE(absl::IsUnavailable(news.ended[1].status));
  EXPECT_FALSE(news.over);
  inbox.Stop();
  EXPECT_TRUE(TakeSomething(inbox).ended.empty());
}

TEST(TransferInboxTest, OnlyTimesThatHaveComeAreTold) {
  TransferInbox inbox(MonotonicClock());
  const int64_t now_ns = MonotonicClock().NowNs();
  inbox.WakeAt(now_ns + kHourNs);
  inbox.WakeAt(now_ns - 1);
  inbox.WakeAt(now_ns - 2);
  EXPECT_EQ(TakeSomething(inbox).times_passed, 2u);
  inbox.Add({.transfer = 1, .at_ns = now_ns, .status = absl::OkStatus()});
  EXPECT_EQ(TakeSomething(inbox).times_passed, 0u);
}

TEST(TransferInboxTest, WaitsUntilATimeHasCome) {
  TransferInbox inbox(MonotonicClock());
  const int64_t at_ns = MonotonicClock().NowNs() + 20'000'000;
  inbox.WakeAt(at_ns);
  EXPECT_EQ(TakeSomething(inbox).times_passed, 1u);
  EXPECT_GE(MonotonicClock().NowNs(), at_ns);
}

TEST(TransferInboxTest, WhatEndedBeforeTheEndIsStillTold) {
  TransferInbox inbox(MonotonicClock());
  inbox.Add({.transfer = 1, .at_ns = 1, .status = absl::OkStatus()});
  inbox.Stop();
  const TransferInbox::News last = TakeSomething(inbox);
  EXPECT_EQ(last.ended.size(), 1u);
  EXPECT_FALSE(last.over);
  EXPECT_TRUE(TakeSomething(inbox).over);
}

TEST(TransferInboxTest, StopEndsAWait) {
  TransferInbox inbox(MonotonicClock());
  std::thread waiting([&] { EXPECT_TRUE(TakeSomething(inbox).over); });
  inbox.Stop();
  waiting.join();
}

}  // namespace
}  // namespace syncopate::sync
