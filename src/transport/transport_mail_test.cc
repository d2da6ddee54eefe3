// The conformance suite's part on mail, on the transports that transport_test.cc names.
#include <poll.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/limits.h"
#include "base/status.h"
#include "gtest/gtest.h"
#include "transport/transport.h"
#include "transport/transport_testing.h"

namespace syncopate::transport {
namespace {

// What one worker has taken, and what of it came from whom.
struct Taken {
  std::vector<Mail> all;
  std::vector<std::string> From(int rank, MailKind kind) const {
    std::vector<std::string> bytes;
    for (const Mail& mail : all) {
      if (mail.from == rank && mail.kind == kind) bytes.push_back(mail.bytes);
    }
    return bytes;
  }
};

std::string Numbered(int from, int number, size_t bytes) {
  std::string text = std::to_string(from) + ":" + std::to_string(number) + " ";
  return text + std::string(bytes > text.size() ? bytes - text.size() : 0,
                            static_cast<char>('a' + number % 26));
}

TEST_P(TransportTest, MessagesArriveOnceAndInOrder) {
  constexpr int kSize = 3, kMessages = 300;
  Make(kSize);
  std::vector<Taken> taken(kSize);
  for (int number = 0; number < kMessages; ++number) {
    for (int from = 0; from < kSize; ++from) {
      for (int to = 0; to < kSize; ++to) {
        const std::string text = Numbered(from, number, number % 7 == 0 ? 4096 : 8);
        // Whoever sends quickly may have to wait until the others have read.
        ASSERT_TRUE(Eventually([&] {
          for (int rank = 0; rank < kSize; ++rank) {
            world_->transport(rank).TakeMail(taken[static_cast<size_t>(rank)].all);
          }
          return world_->transport(from).Post(to, MailKind::kMessage, text).ok();
        }));
      }
    }
  }
  for (int to = 0; to < kSize; ++to) {
    Taken& mine = taken[static_cast<size_t>(to)];
    ASSERT_TRUE(Eventually([&] {
      for (int rank = 0; rank < kSize; ++rank) {
        world_->transport(rank).TakeMail(taken[static_cast<size_t>(rank)].all);
      }
      return mine.all.size() >= kSize * kMessages;
    })) << mine.all.size();
    for (int from = 0; from < kSize; ++from) {
      const std::vector<std::string> came = mine.From(from, MailKind::kMessage);
      ASSERT_EQ(came.size(), static_cast<size_t>(kMessages));
      for (int number = 0; number < kMessages; ++number) {
        ASSERT_EQ(came[static_cast<size_t>(number)],
                  Numbered(from, number, number % 7 == 0 ? 4096 : 8));
      }
    }
  }
}

TEST_P(TransportTest, ParcelsArriveWholeAndInOrderBesideMessages) {
  Make(2);
  const std::vector<size_t> sizes = {
      10, 3 << 20, 100, 200 << 10, 15 << 10, MailBytesMax(MailKind::kParcel), 1};
  Taken taken[2];
  for (size_t i = 0; i < sizes.size(); ++i) {
    for (int from : {0, 1}) {
      const int number = static_cast<int>(i);
      ASSERT_TRUE(world_->transport(from)
                      .Post(1 - from, MailKind::kParcel, Numbered(from, number, sizes[i]))
                      .ok());
      ASSERT_TRUE(world_->transport(from)
                      .Post(1 - from, MailKind::kMessage, Numbered(from, number, 20))
                      .ok());
    }
  }
  ASSERT_TRUE(Eventually([&] {
    for (int rank : {0, 1}) world_->transport(rank).TakeMail(taken[rank].all);
    return taken[0].all.size() == 2 * sizes.size() && taken[1].all.size() == 2 * sizes.size();
  }));
  for (int from : {0, 1}) {
    const std::vector<std::string> parcels = taken[1 - from].From(from, MailKind::kParcel);
    ASSERT_EQ(parcels.size(), sizes.size());
    for (size_t i = 0; i < sizes.size(); ++i) {
      EXPECT_TRUE(parcels[i] == Numbered(from, static_cast<int>(i), sizes[i])) << i;
    }
  }
}

TEST_P(TransportTest, AMessageOvertakesAParcel) {
  Make(2);
  ASSERT_TRUE(world_->transport(0).Post(1, MailKind::kParcel, std::string(32 << 20, 'p')).ok());
  ASSERT_TRUE(world_->transport(0).Post(1, MailKind::kMessage, "urgent").ok());
  std::vector<Mail> mail, others;
  ASSERT_TRUE(Eventually([&] {
    world_->transport(0).TakeMail(others);
    world_->transport(1).TakeMail(mail);
    return mail.size() == 2;
  }));
  EXPECT_EQ(mail[0].bytes, "urgent");
  EXPECT_EQ(mail[1].bytes.size(), size_t{32} << 20);
}

// Nobody takes anything, so what is posted waits: in the queue and, in shared memory, in a ring of
// 64 KiB beside it.
TEST_P(TransportTest, AFullMailQueueNamesTheWorkerAndLosesNothing) {
  Make(2);
  int posted = 0;
  absl::Status status;
  while (status.ok() && posted < 20000) {
    status = world_->transport(0).Post(1, MailKind::kMessage, Numbered(0, posted, 4096));
    if (status.ok()) ++posted;
    world_->Pass();
  }
  ASSERT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << posted << " " << status;
  EXPECT_NE(status.message().find("worker 1"), absl::string_view::npos) << status;
  EXPECT_EQ(GetSuspect(status), 1);
  EXPECT_GE(posted, static_cast<int>(limits::kMailQueuedBytesMax / 4096));
  EXPECT_LE(posted, static_cast<int>(limits::kMailQueuedBytesMax / 4096 + (64 << 10) / 4096));
  // To others there is room.
  EXPECT_TRUE(world_->transport(0).Post(0, MailKind::kMessage, "to itself").ok());
  EXPECT_TRUE(world_->transport(1).Post(0, MailKind::kMessage, "back").ok());
  EXPECT_TRUE(world_->transport(0).Post(1, MailKind::kParcel, "a parcel").ok());
  Taken taken;
  std::vector<Mail> others;
  ASSERT_TRUE(Eventually([&] {
    world_->transport(1).TakeMail(taken.all);
    world_->transport(0).TakeMail(others);
    return taken.all.size() == static_cast<size_t>(posted) + 1;
  })) << taken.all.size();
  const std::vector<std::string> came = taken.From(0, MailKind::kMessage);
  ASSERT_EQ(came.size(), static_cast<size_t>(posted));
  for (int number = 0; number < posted; ++number) {
    ASSERT_EQ(came[static_cast<size_t>(number)], Numbered(0, number, 4096));
  }
  EXPECT_TRUE(
      Eventually([&] { return world_->transport(0).Post(1, MailKind::kMessage, "again").ok(); }));
}

// A worker's mail to itself has the same bounds.
TEST_P(TransportTest, MailToItselfComesInOrderAndIsBounded) {
  Make(1);
  for (const MailKind kind : {MailKind::kMessage, MailKind::kParcel}) {
    const size_t bytes = kind == MailKind::kMessage ? 4096 : size_t{32} << 20;
    const int fit = static_cast<int>(MailQueueBytesMax(kind) / bytes);
    for (int number = 0; number < fit; ++number) {
      ASSERT_TRUE(world_->transport(0).Post(0, kind, Numbered(0, number, bytes)).ok()) << number;
    }
    EXPECT_EQ(world_->transport(0).Post(0, kind, std::string(bytes, 'x')).code(),
              absl::StatusCode::kResourceExhausted);
    Taken taken;
    ASSERT_TRUE(Eventually([&] {
      world_->transport(0).TakeMail(taken.all);
      return taken.all.size() == static_cast<size_t>(fit);
    }));
    for (int number = 0; number < fit; ++number) {
      ASSERT_TRUE(taken.all[static_cast<size_t>(number)].bytes == Numbered(0, number, bytes));
    }
    EXPECT_TRUE(world_->transport(0).Post(0, kind, "again").ok());
    ASSERT_TRUE(Eventually([&] {
      taken.all.clear();
      world_->transport(0).TakeMail(taken.all);
      return !taken.all.empty();
    }));
  }
}

TEST_P(TransportTest, OfALostWorkerComesWhatWasThereThenOneWordThenNothing) {
  Make(3);
  Unmake();
  for (int number = 0; number < 20; ++number) {
    ASSERT_TRUE(world_->transport(2).Post(0, MailKind::kMessage, Numbered(2, number, 100)).ok());
  }
  ASSERT_TRUE(world_->transport(2).Post(0, MailKind::kParcel, Numbered(2, 0, 1 << 20)).ok());
  world_->Lose(2);
  Taken taken;
  const auto is_last = [](const Mail& mail) {
    return mail.kind == MailKind::kLost || mail.kind == MailKind::kLeft;
  };
  ASSERT_TRUE(Eventually([&] {
    world_->transport(0).TakeMail(taken.all);
    return !taken.all.empty() && is_last(taken.all.back());
  }));
  const Mail last = taken.all.back();
  EXPECT_EQ(last.from, 2);
  EXPECT_FALSE(last.bytes.empty());
  EXPECT_GE(last.order, 1u);
  for (int i = 0; i < 200; ++i) {
    world_->transport(0).TakeMail(taken.all);
    world_->Pass();
  }
  EXPECT_EQ(std::count_if(taken.all.begin(), taken.all.end(), is_last), 1);
  EXPECT_EQ(taken.all.back(), last) << "nothing comes after it";
  const std::vector<std::string> messages = taken.From(2, MailKind::kMessage);
  for (size_t number = 0; number < messages.size(); ++number) {
    EXPECT_EQ(messages[number], Numbered(2, static_cast<int>(number), 100));
  }
  const absl::Status status = world_->transport(0).Post(2, MailKind::kMessage, "hello");
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
}

// One that is declared lost while it lives: the others hear that it is lost, not that it left, and it
// hears so itself.
TEST_P(TransportTest, OfAnExpelledWorkerAllHearOnceThatItIsLost) {
  Make(4);
  std::vector<Taken> taken(4);
  const auto take = [&] {
    for (size_t rank = 0; rank < taken.size(); ++rank) {
      world_->transport(static_cast<int>(rank)).TakeMail(taken[rank].all);
    }
  };
  world_->transport(0).Expel(2);
  ASSERT_TRUE(Eventually([&] {
    take();
    return std::all_of(taken.begin(), taken.end(),
                       [](const Taken& one) { return one.From(2, MailKind::kLost).size() == 1; });
  }));
  for (int i = 0; i < 200; ++i) {
    (void)world_->transport(2).Post(0, MailKind::kMessage, "I am still here");
    take();
    world_->Pass();
  }
  for (const int rank : {0, 1, 3}) {
    EXPECT_EQ(taken[static_cast<size_t>(rank)].all.size(), 1u) << rank;
  }
  EXPECT_EQ(taken[2].From(2, MailKind::kLost).size(), 1u);
  EXPECT_EQ(world_->transport(2).Post(0, MailKind::kMessage, "hello").code(),
            absl::StatusCode::kAborted);
  EXPECT_EQ(world_->transport(3).Post(2, MailKind::kMessage, "hello").code(),
            absl::StatusCode::kUnavailable);
  EXPECT_TRUE(world_->transport(3).Post(1, MailKind::kMessage, "hello").ok());
}

TEST_P(TransportTest, MailOutsideOfItsLimitsIsRefused) {
  Make(2);
  Transport& transport = world_->transport(0);
  const auto code = [&](int to, MailKind kind, size_t bytes) {
    return transport.Post(to, kind, std::string(bytes, 'x')).code();
  };
  EXPECT_EQ(code(2, MailKind::kMessage, 1), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(-1, MailKind::kMessage, 1), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(1, MailKind::kMessage, 0), absl::StatusCode::kInvalidArgument);
  for (const MailKind kind : {MailKind::kMessage, MailKind::kParcel}) {
    EXPECT_EQ(code(1, kind, MailBytesMax(kind) + 1), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(code(1, kind, MailBytesMax(kind)), absl::StatusCode::kOk);
  }
  EXPECT_EQ(code(1, MailKind::kLost, 1), absl::StatusCode::kInvalidArgument);
}

TEST_P(TransportTest, TheMailBellRingsUntilTheMailIsTaken) {
  Make(2);
  const int bell = world_->transport(1).mail_bell();
  if (bell < 0) return;  // one thread drives all workers: nobody sleeps
  const auto rings = [&] {
    pollfd ready = {.fd = bell, .events = POLLIN, .revents = 0};
    return poll(&ready, 1, 0) == 1;
  };
  std::vector<Mail> mail;
  world_->transport(1).TakeMail(mail);
  EXPECT_FALSE(rings());
  for (int from : {0, 1}) {
    ASSERT_TRUE(world_->transport(from).Post(1, MailKind::kMessage, "hello").ok());
    ASSERT_TRUE(Eventually(rings));
    mail.clear();
    world_->transport(1).TakeMail(mail);
    ASSERT_EQ(mail.size(), 1u);
    EXPECT_FALSE(rings());
  }
}

}  // namespace
}  // namespace syncopate::transport
