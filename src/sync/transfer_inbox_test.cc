#include "sync/transfer_inbox.h"

#include <atomic>
#include <thread>

#include "gtest/gtest.h"

namespace syncopate::sync {
namespace {

constexpr int64_t kHourNs = 3'600'000'000'000;

int64_t InAnHour() { return MonotonicClock().NowNs() + kHourNs; }

TEST(TransferInboxTest, WhatCameIsTakenOnceAndInOrder) {
  int told = 0;
  TransferInbox inbox(MonotonicClock(), [&] { ++told; });
  inbox.Add(EndedCall{.transfer = 7, .at_ns = 1, .status = absl::OkStatus()});
  inbox.Add(strategy::WorkerLeft{4});
  inbox.Add(EndedCall{.transfer = 3, .at_ns = 2, .status = absl::UnavailableError("lost")});
  inbox.Add(absl::AbortedError("out"));
  EXPECT_EQ(told, 1);  // the control thread takes all of it
  const std::vector<TransferInbox::Item> items = inbox.Take();
  ASSERT_EQ(items.size(), 4u);
  EXPECT_EQ(std::get<EndedCall>(items[0]).transfer, 7);
  EXPECT_EQ(std::get<strategy::WorkerLeft>(std::get<strategy::Event>(items[1])).rank, 4);
  EXPECT_EQ(std::get<EndedCall>(items[2]).transfer, 3);
  EXPECT_TRUE(absl::IsUnavailable(std::get<EndedCall>(items[2]).status));
  EXPECT_TRUE(absl::IsAborted(std::get<absl::Status>(items[3])));
  EXPECT_TRUE(inbox.Take().empty());
  inbox.Add(strategy::WorkerLeft{5});
  EXPECT_EQ(told, 2);
}

// With a deadline of an hour, only the item itself can end the wait; and the control thread is not
// woken for it.
TEST(TransferInboxTest, ACallThatEndsWakesTheThreadThatWaitsAndNoOther) {
  std::atomic<int> told{0};
  TransferInbox inbox(MonotonicClock(), [&] { ++told; });
  std::atomic<bool> taken{false};
  std::thread training([&] {
    EXPECT_TRUE(inbox.Wait(InAnHour()));
    EXPECT_EQ(inbox.Take().size(), 1u);
    taken = true;
  });
  while (!inbox.waited_for()) std::this_thread::yield();
  inbox.Add(EndedCall{.transfer = 1, .at_ns = 1, .status = absl::OkStatus()});
  training.join();
  EXPECT_TRUE(taken);
  EXPECT_EQ(told, 0);
}

TEST(TransferInboxTest, ARingIsSeenBeforeAndDuringAWaitAndOnce) {
  TransferInbox inbox(MonotonicClock(), [] {});
  inbox.Ring();
  EXPECT_TRUE(inbox.Wait(InAnHour()));
  EXPECT_FALSE(inbox.Wait(MonotonicClock().NowNs() + 1'000'000));
  std::thread training([&] { EXPECT_TRUE(inbox.Wait(InAnHour())); });
  while (!inbox.waited_for()) std::this_thread::yield();
  inbox.Ring();
  training.join();
}

TEST(TransferInboxTest, AWaitEndsAtItsDeadline) {
  TransferInbox inbox(MonotonicClock(), [] {});
  const int64_t deadline_ns = MonotonicClock().NowNs() + 5'000'000;
  EXPECT_FALSE(inbox.Wait(deadline_ns));
  EXPECT_GE(MonotonicClock().NowNs(), deadline_ns);
}

}  // namespace
}  // namespace syncopate::sync
