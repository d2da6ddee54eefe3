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
    if (!news.items.empty() || news.times_passed > 0 || news.over) return news;
  }
}

TEST(TransferInboxTest, WhatEndedIsTakenOnceAndInOrder) {
  TransferInbox inbox(MonotonicClock());
  inbox.Add(EndedCall{.transfer = 7, .at_ns = 1, .status = absl::OkStatus()});
  inbox.Add(strategy::WorkerLeft{4});
  inbox.Add(EndedCall{.transfer = 3, .at_ns = 2, .status = absl::UnavailableError("lost")});
  const TransferInbox::News news = TakeSomething(inbox);
  ASSERT_EQ(news.items.size(), 3u);
  EXPECT_EQ(std::get<EndedCall>(news.items[0]).transfer, 7);
  EXPECT_EQ(std::get<strategy::WorkerLeft>(std::get<strategy::Event>(news.items[1])).rank, 4);
  EXPECT_EQ(std::get<EndedCall>(news.items[2]).transfer, 3);
  EXPECT_TRUE(absl::IsUnavailable(std::get<EndedCall>(news.items[2]).status));
  EXPECT_FALSE(news.over);
  inbox.Stop();
  EXPECT_TRUE(TakeSomething(inbox).items.empty());
}

TEST(TransferInboxTest, OnlyTimesThatHaveComeAreTold) {
  TransferInbox inbox(MonotonicClock());
  const int64_t now_ns = MonotonicClock().NowNs();
  inbox.WakeAt(now_ns + kHourNs);
  inbox.WakeAt(now_ns - 1);
  inbox.WakeAt(now_ns - 2);
  EXPECT_EQ(TakeSomething(inbox).times_passed, 2u);
  inbox.Add(EndedCall{.transfer = 1, .at_ns = now_ns, .status = absl::OkStatus()});
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
  inbox.Add(EndedCall{.transfer = 1, .at_ns = 1, .status = absl::OkStatus()});
  inbox.Stop();
  const TransferInbox::News last = TakeSomething(inbox);
  EXPECT_EQ(last.items.size(), 1u);
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
