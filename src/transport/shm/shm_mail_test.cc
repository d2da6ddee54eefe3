// Mail of a worker that leaves the job, in shared memory. What all transports promise of mail is tested by
// transport_mail_test.cc.
#include "transport/shm/shm_mail.h"

#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "gtest/gtest.h"
#include "transport/mail.h"
#include "transport/transport_testing.h"

namespace syncopate::transport::shm {
namespace {

constexpr int kLastMessages = 200;
constexpr size_t kLastMessageBytes = 4096;  // together more than a ring holds

std::string LastMessage(int number) {
  std::string text = std::to_string(number);
  return text + std::string(kLastMessageBytes - text.size(), '.');
}

void PostLastMessages(Transport& transport) {
  static_assert(kLastMessages * kLastMessageBytes > MailRing::kBytes);
  for (int number = 0; number < kLastMessages; ++number) {
    ASSERT_TRUE(transport.Post(0, MailKind::kMessage, LastMessage(number)).ok());
  }
}

// Whether all that one has sent came before the word that it left. It must come in order in any case.
bool AllComes() {
  ShmTestWorld world(2);
  PostLastMessages(world.transport(1));
  EXPECT_TRUE(world.transport(1).Post(0, MailKind::kParcel, std::string(200 << 10, 'p')).ok());
  std::thread leaving([&] { world.Lose(1); });
  std::vector<Mail> mail;
  const int64_t until_ns = MonotonicClock().NowNs() + 20'000'000'000;
  while ((mail.empty() || mail.back().kind != MailKind::kLeft) &&
         MonotonicClock().NowNs() < until_ns) {
    world.transport(0).TakeMail(mail);
    std::this_thread::yield();
  }
  leaving.join();
  int messages = 0, parcels = 0;
  for (const Mail& one : mail) {
    if (one.kind == MailKind::kMessage) {
      EXPECT_EQ(one.bytes, LastMessage(messages++));
    }
    parcels += one.kind == MailKind::kParcel && one.bytes.size() == 200 << 10;
  }
  return messages == kLastMessages && parcels == 1;
}

// All but what the ring held was lost with the worker that sent it. One that leaves waits for half a second at
// most, so where this thread gets no processor for as long, it is tried again.
TEST(ShmMailTest, WhatWaitsForRoomComesBeforeItsSenderHasLeft) {
  bool all = false;
  for (int attempt = 0; attempt < 3 && !all; ++attempt) all = AllComes();
  EXPECT_TRUE(all);
}

TEST(ShmMailTest, AReceiverThatDoesNotReadKeepsNobodyFromLeaving) {
  ShmTestWorld world(2);
  PostLastMessages(world.transport(1));
  world.Lose(1);
  std::vector<Mail> mail;
  world.transport(0).TakeMail(mail);
  ASSERT_FALSE(mail.empty());
  EXPECT_EQ(mail.back().kind, MailKind::kLeft);
  EXPECT_LT(mail.size(), static_cast<size_t>(kLastMessages)) << "the ring did not get full";
}

// Both go at once, and nobody reads.
TEST(ShmMailTest, WorkersWithMailForEachOtherCanBothLeave) {
  ShmTestWorld world(2);
  for (int number = 0; number < kLastMessages; ++number) {
    for (const int rank : {0, 1}) {
      ASSERT_TRUE(
          world.transport(rank).Post(1 - rank, MailKind::kMessage, LastMessage(number)).ok());
    }
  }
  std::thread first([&] { world.Lose(0); });
  world.Lose(1);
  first.join();
}

}  // namespace
}  // namespace syncopate::transport::shm
