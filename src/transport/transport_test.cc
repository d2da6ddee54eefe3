// The conformance suite: what every transport promises, tested on each of them.
#include "transport/transport.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "transport/loop/loop_transport.h"
#include "transport/net/net_transport.h"
#include "transport/shm/shm_transport.h"

namespace syncopate::transport {
namespace {

// All workers of a job in this process; one thread polls them all.
class World {
 public:
  virtual ~World() = default;
  virtual Transport& transport(int rank) = 0;
  virtual void Pass() {}  // lets time pass where the transport has none of its own
  // Ends a worker as if it had died.
  virtual void Lose(int rank) = 0;
};

class LoopTestWorld final : public World {
 public:
  explicit LoopTestWorld(int size) : network_(size, 42) {
    for (int rank = 0; rank < size; ++rank) transports_.push_back(network_.Attach(rank));
  }
  Transport& transport(int rank) override { return *transports_[static_cast<size_t>(rank)]; }
  void Pass() override { network_.Tick(); }
  void Lose(int rank) override { network_.Kill(rank); }

 private:
  LoopNetwork network_;
  std::vector<std::unique_ptr<Transport>> transports_;
};

class ShmTestWorld final : public World {
 public:
  explicit ShmTestWorld(int size) : transports_(static_cast<size_t>(size)) {
    static int jobs = 0;
    const std::string job =
        "transport-test-" + std::to_string(getpid()) + "-" + std::to_string(++jobs);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size; ++rank) {
      threads.emplace_back([&, rank] {
        transports_[static_cast<size_t>(rank)] = *StartShmTransport(
            {.job = job, .rank = rank, .size = size, .arena_bytes = 1 << 20}, MonotonicClock());
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  Transport& transport(int rank) override { return *transports_[static_cast<size_t>(rank)]; }
  void Lose(int rank) override { transports_[static_cast<size_t>(rank)].reset(); }

 private:
  std::vector<std::unique_ptr<Transport>> transports_;
};

// Workers that meet by TCP on the loopback; those of one `machine` share memory.
class NetTestWorld final : public World {
 public:
  NetTestWorld(int size, int machines, const std::string& wire, int lanes)
      : transports_(static_cast<size_t>(size)) {
    static int jobs = 0;
    const std::string job = "net-test-" + std::to_string(getpid()) + "-" + std::to_string(++jobs);
    std::vector<std::unique_ptr<NetStart>> starts;
    std::vector<std::string> payloads;
    for (int rank = 0; rank < size; ++rank) {
      starts.push_back(*StartNetTransport({.job = job,
                                           .rank = rank,
                                           .size = size,
                                           .ip = "127.0.0.1",
                                           .wire = wire,
                                           .lanes = lanes,
                                           .machine = "machine " + std::to_string(rank % machines),
                                           .arena_bytes = 1 << 20},
                                          MonotonicClock()));
      payloads.push_back(starts.back()->payload());
    }
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size; ++rank) {
      threads.emplace_back([&, rank] {
        transports_[static_cast<size_t>(rank)] =
            *starts[static_cast<size_t>(rank)]->Connect(payloads, "the key of this job");
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  Transport& transport(int rank) override { return *transports_[static_cast<size_t>(rank)]; }
  void Pass() override {
    bool moved = false;
    for (auto& transport : transports_) moved |= transport != nullptr && transport->Progress();
    if (!moved) std::this_thread::yield();
  }
  void Lose(int rank) override { transports_[static_cast<size_t>(rank)].reset(); }

 private:
  std::vector<std::unique_ptr<Transport>> transports_;
};

using MakeWorld = std::function<std::unique_ptr<World>(int size)>;

class TransportTest : public ::testing::TestWithParam<std::pair<const char*, MakeWorld>> {
 protected:
  void Make(int size) {
    world_ = GetParam().second(size);
    std::vector<int> everyone(static_cast<size_t>(size));
    std::iota(everyone.begin(), everyone.end(), 0);
    for (int rank = 0; rank < size; ++rank) {
      ports_.push_back(*world_->transport(rank).OpenGroup(77, everyone));
      memory_.push_back(*world_->transport(rank).Allocate(4096));
    }
  }

  void Unmake() {
    ports_.clear();
    for (size_t rank = 0; rank < memory_.size(); ++rank) {
      world_->transport(static_cast<int>(rank)).Free(memory_[rank]);
    }
    memory_.clear();
  }
  void TearDown() override { Unmake(); }

  uint64_t DigestOf(int rank) const {
    return 1000 + (own_digests_ ? static_cast<uint64_t>(rank) : 0);
  }

  std::unique_ptr<Session> Open(int rank, uint64_t sequence, uint32_t steps = 8) {
    auto session =
        ports_[static_cast<size_t>(rank)]->Open({.sequence = sequence,
                                                 .digest = DigestOf(rank),
                                                 .weight = 0.5 + rank,
                                                 .data = memory_[static_cast<size_t>(rank)],
                                                 .data_bytes = 4096,
                                                 .steps = steps});
    return session.ok() ? *std::move(session) : nullptr;
  }

  std::vector<std::unique_ptr<Session>> OpenAll(uint64_t sequence, uint32_t steps = 8) {
    std::vector<std::unique_ptr<Session>> sessions;
    for (size_t rank = 0; rank < ports_.size(); ++rank) {
      sessions.push_back(Open(static_cast<int>(rank), sequence, steps));
    }
    return sessions;
  }

  // Polls until `condition` holds; false after so many passes that it never will.
  // Many rounds for transports whose time are rounds, and 20 s for those with threads of their own.
  bool Eventually(const std::function<bool()>& condition) {
    const int64_t until_ns = MonotonicClock().NowNs() + 20'000'000'000;
    for (int i = 0; i < 100000 || MonotonicClock().NowNs() < until_ns; ++i) {
      if (condition()) return true;
      world_->Pass();
    }
    return false;
  }

  bool EnterAll(std::vector<std::unique_ptr<Session>>& sessions, Gate gate) {
    for (size_t m = 0; m < sessions.size(); ++m) {
      if (!sessions[m]->Enter(gate, static_cast<int>(m))) return false;
    }
    return Eventually([&] {
      return std::all_of(sessions.begin(), sessions.end(),
                         [&](auto& s) { return s->State(gate) == GateState::kPassed; });
    });
  }

  bool own_digests_ = false;  // every worker has its own
  std::unique_ptr<World> world_;
  std::vector<std::unique_ptr<GroupPort>> ports_;
  std::vector<std::byte*> memory_;
};

TEST_P(TransportTest, GatePassesWhenAllHaveEnteredAndNotBefore) {
  Make(3);
  auto sessions = OpenAll(0);
  EXPECT_TRUE(sessions[0]->Enter(Gate::kStart, 0));
  EXPECT_TRUE(sessions[2]->Enter(Gate::kStart, 2));
  EXPECT_TRUE(sessions[2]->Enter(Gate::kStart, 2)) << "twice is once";
  for (int i = 0; i < 100; ++i) {
    for (auto& session : sessions) ASSERT_EQ(session->State(Gate::kStart), GateState::kOpen);
    world_->Pass();
  }
  EXPECT_TRUE(Eventually([&] { return sessions[0]->Entered(Gate::kStart, 2); }));
  EXPECT_FALSE(sessions[0]->Entered(Gate::kStart, 1));
  ASSERT_TRUE(EnterAll(sessions, Gate::kStart));
  EXPECT_EQ(sessions[1]->State(Gate::kFinish), GateState::kOpen);
  EXPECT_EQ(sessions[1]->Break(Gate::kStart, BreakReason::kTime), GateState::kPassed)
      << "too late to break it";
}

TEST_P(TransportTest, BrokenGateStaysBrokenForAll) {
  Make(3);
  auto sessions = OpenAll(0);
  EXPECT_TRUE(sessions[0]->Enter(Gate::kStart, 0));
  EXPECT_NE(sessions[1]->Break(Gate::kStart, BreakReason::kTime), GateState::kPassed);
  EXPECT_TRUE(Eventually([&] { return sessions[1]->State(Gate::kStart) == GateState::kBroken; }));
  EXPECT_TRUE(Eventually([&] { return sessions[1]->Enter(Gate::kStart, 1); }));
  EXPECT_TRUE(Eventually([&] { return sessions[2]->Enter(Gate::kStart, 2); }));
  for (auto& session : sessions) {
    EXPECT_TRUE(Eventually([&] { return session->State(Gate::kStart) == GateState::kBroken; }));
    const Session::Failure why = session->WhyBroken(Gate::kStart);
    EXPECT_FALSE(why.for_loss);
    EXPECT_EQ(why.missing, sessions[0]->WhyBroken(Gate::kStart).missing);
    EXPECT_FALSE(why.missing.empty());
  }
}

TEST_P(TransportTest, HellosAreReadableAfterTheStart) {
  own_digests_ = true;
  Make(3);
  auto sessions = OpenAll(0);
  ASSERT_TRUE(EnterAll(sessions, Gate::kStart));
  for (auto& session : sessions) {
    for (int member = 0; member < 3; ++member) {
      EXPECT_EQ(session->HelloOf(member).digest, 1000u + static_cast<uint64_t>(member));
      EXPECT_EQ(session->HelloOf(member).weight, 0.5 + member);
    }
  }
}

TEST_P(TransportTest, BytesArriveAndTheSenderLearnsWhenTheyAreConsumed) {
  for (uint32_t steps : {8u, 1000u}) {  // few and many steps are kept differently
    SCOPED_TRACE(steps);
    Unmake();
    Make(2);
    auto sessions = OpenAll(0, steps);
    ASSERT_TRUE(EnterAll(sessions, Gate::kStart));
    std::memcpy(memory_[0] + 16, "hello", 5);
    const Extent where = {Space::kData, 16, 5};
    const uint32_t send = steps - 1, receive = steps - 2;
    for (int i = 0; i < 50; ++i) {
      ASSERT_EQ(sessions[1]->Arrived(0, send, where), nullptr);
      world_->Pass();
    }
    sessions[0]->Offer(send, 1, memory_[0] + 16, where);
    const std::byte* arrived = nullptr;
    ASSERT_TRUE(
        Eventually([&] { return (arrived = sessions[1]->Arrived(0, send, where)) != nullptr; }));
    EXPECT_EQ(std::memcmp(arrived, "hello", 5), 0);
    sessions[1]->Consume(receive, 0, send);
    EXPECT_TRUE(Eventually([&] { return sessions[0]->Consumed(1, send, receive); }));
  }
}

TEST_P(TransportTest, ManySessionsOneAfterTheOther) {
  Make(4);
  for (uint64_t sequence = 0; sequence < 2000; ++sequence) {
    auto sessions = OpenAll(sequence);
    ASSERT_NE(sessions[0], nullptr);
    ASSERT_TRUE(EnterAll(sessions, Gate::kStart)) << sequence;
    ASSERT_TRUE(EnterAll(sessions, Gate::kFinish)) << sequence;
  }
}

TEST_P(TransportTest, SessionsOfOneGroupOverlap) {
  Make(2);
  std::vector<std::vector<std::unique_ptr<Session>>> open;
  for (uint64_t sequence = 0; sequence < 10; ++sequence) open.push_back(OpenAll(sequence));
  for (uint64_t sequence : {7, 2, 9, 0, 5}) {
    ASSERT_TRUE(EnterAll(open[sequence], Gate::kStart));
    EXPECT_EQ(open[sequence][0]->State(Gate::kFinish), GateState::kOpen);
  }
  EXPECT_EQ(open[1][0]->State(Gate::kStart), GateState::kOpen);
}

TEST_P(TransportTest, GroupsDoNotDisturbEachOther) {
  Make(4);
  std::vector<std::unique_ptr<GroupPort>> low, high;
  for (int rank : {0, 1}) low.push_back(*world_->transport(rank).OpenGroup(5, {0, 1}));
  for (int rank : {1, 3}) high.push_back(*world_->transport(rank).OpenGroup(6, {3, 1}));
  auto a0 = *low[0]->Open({.sequence = 0});
  auto a1 = *low[1]->Open({.sequence = 0});
  auto b1 = *high[0]->Open({.sequence = 0});
  EXPECT_TRUE(a0->Enter(Gate::kStart, 0));
  EXPECT_TRUE(Eventually([&] { return b1->Enter(Gate::kStart, 1); }));
  EXPECT_EQ(a0->State(Gate::kStart), GateState::kOpen);
  EXPECT_EQ(b1->State(Gate::kStart), GateState::kOpen);
  EXPECT_TRUE(a1->Enter(Gate::kStart, 1));
  EXPECT_TRUE(Eventually([&] { return a0->State(Gate::kStart) == GateState::kPassed; }));
  EXPECT_EQ(b1->State(Gate::kStart), GateState::kOpen);
  EXPECT_FALSE(world_->transport(2).OpenGroup(9, {0, 1}).ok()) << "not a member";
}

TEST_P(TransportTest, LossesAreSeenByAllInOneOrder) {
  Make(4);
  EXPECT_EQ(world_->transport(0).losses(), 0u);
  Unmake();
  world_->Lose(2);
  for (int rank : {0, 1, 3}) {
    ASSERT_TRUE(Eventually([&] { return world_->transport(rank).losses() == 1; }));
  }
  world_->Lose(1);
  for (int rank : {0, 3}) {
    ASSERT_TRUE(Eventually([&] { return world_->transport(rank).losses() == 2; }));
    const std::vector<Loss> lost = world_->transport(rank).Lost();
    ASSERT_EQ(lost.size(), 2u);
    EXPECT_EQ(lost[0].rank, 2);
    EXPECT_EQ(lost[1].rank, 1);
    EXPECT_FALSE(lost[0].cause.empty());
    EXPECT_GE(world_->transport(rank).losses(), 2u);
  }
}

TEST_P(TransportTest, DirectMemoryIsTheMembersOwn) {
  Make(3);
  if (!ports_[0]->direct()) return;  // the promise is made by direct transports only
  auto sessions = OpenAll(0);
  ASSERT_TRUE(EnterAll(sessions, Gate::kStart));
  for (int member = 0; member < 3; ++member) {
    std::memset(memory_[static_cast<size_t>(member)], 10 + member, 4096);
    for (auto& session : sessions) {
      const std::byte* seen = session->Memory(member, Space::kData);
      ASSERT_NE(seen, nullptr);
      EXPECT_EQ(seen[4095], static_cast<std::byte>(10 + member));
    }
    sessions[0]->Notes(member)[Session::kNotesBytes - 1] = static_cast<std::byte>(50 + member);
    EXPECT_EQ(sessions[1]->Notes(member)[Session::kNotesBytes - 1],
              static_cast<std::byte>(50 + member));
  }
}

// ---- mail

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

INSTANTIATE_TEST_SUITE_P(
    All, TransportTest,
    ::testing::Values(
        std::make_pair("loop", MakeWorld([](int size) -> std::unique_ptr<World> {
                         return std::make_unique<LoopTestWorld>(size);
                       })),
        std::make_pair("shm", MakeWorld([](int size) -> std::unique_ptr<World> {
                         return std::make_unique<ShmTestWorld>(size);
                       })),
        std::make_pair("tcp", MakeWorld([](int size) -> std::unique_ptr<World> {
                         return std::make_unique<NetTestWorld>(size, size, "tcp", 1);
                       })),
        std::make_pair("tcp_lanes", MakeWorld([](int size) -> std::unique_ptr<World> {
                         return std::make_unique<NetTestWorld>(size, size, "tcp", 3);
                       })),
        std::make_pair("ucx", MakeWorld([](int size) -> std::unique_ptr<World> {
                         return std::make_unique<NetTestWorld>(size, size, "ucx", 1);
                       })),
        std::make_pair("ucx_and_shm", MakeWorld([](int size) -> std::unique_ptr<World> {
                         return std::make_unique<NetTestWorld>(size, 2, "ucx", 1);
                       })),
        std::make_pair("tcp_and_shm", MakeWorld([](int size) -> std::unique_ptr<World> {
                         return std::make_unique<NetTestWorld>(size, 2, "tcp", 1);
                       }))),
    [](const auto& param) { return std::string(param.param.first); });

// ---- what only networks have

// What is dropped would otherwise be seen by nobody.
TEST(NetTransportTest, FramesOfClosedGroupsAreCountedAndShown) {
  ASSERT_TRUE(SetUpLog("INFO", "test").ok());
  ::testing::internal::CaptureStderr();
  {
    NetTestWorld world(2, 2, "tcp", 1);
    const auto mine = *world.transport(0).OpenGroup(5, {0, 1});
    (*world.transport(1).OpenGroup(5, {0, 1})).reset();
    std::byte data[8] = {};
    const auto session =
        *mine->Open({.sequence = 0, .awaits_start = false, .data_bytes = 8, .steps = 1});
    session->Offer(0, 1, data, {Space::kData, 0, 8});
    for (int i = 0; i < 100000 && !session->Consumed(1, 0, 0); ++i) world.Pass();
  }
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_TRUE(SetUpLog("", "test").ok());
  // The one that says that the operation has begun, and the data.
  EXPECT_THAT(log, ::testing::HasSubstr("dropped frames: 2 of closed groups"));
}

// ---- what only shared memory has

TEST(ShmTransportTest, MissingWorkersAreNamed) {
  const auto started = StartShmTransport({.job = "missing-" + std::to_string(getpid()),
                                          .rank = 1,
                                          .size = 3,
                                          .arena_bytes = 1 << 20,
                                          .start_timeout_ns = 50'000'000},
                                         MonotonicClock());
  ASSERT_EQ(started.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_NE(started.status().message().find("workers 0,2"), absl::string_view::npos)
      << started.status();
}

TEST(ShmTransportTest, OneOfTwoWorkersOfOneRankIsRefused) {
  const ShmOptions options = {.job = "twice-" + std::to_string(getpid()),
                              .rank = 0,
                              .size = 2,
                              .arena_bytes = 1 << 20,
                              .start_timeout_ns = 500'000'000};
  absl::Status statuses[2];
  std::vector<std::thread> threads;
  for (absl::Status& status : statuses) {
    threads.emplace_back([&] { status = StartShmTransport(options, MonotonicClock()).status(); });
  }
  for (std::thread& thread : threads) thread.join();
  // Whoever came second was refused; the other waited for rank 1 in vain.
  std::sort(std::begin(statuses), std::end(statuses),
            [](const auto& a, const auto& b) { return a.code() < b.code(); });
  EXPECT_EQ(statuses[0].code(), absl::StatusCode::kDeadlineExceeded) << statuses[0];
  EXPECT_EQ(statuses[1].code(), absl::StatusCode::kAlreadyExists) << statuses[1];
}

TEST(ShmTransportTest, ParkReturnsWhenAPeerMovesAndAtTheDeadline) {
  ShmTestWorld world(2);
  Transport& sleeper = world.transport(1);
  const int64_t start_ns = MonotonicClock().NowNs();
  uint32_t ticket = sleeper.PrepareToPark();
  sleeper.Park(ticket, start_ns + 20'000'000);
  EXPECT_GE(MonotonicClock().NowNs(), start_ns + 20'000'000) << "nobody moved";
  // A peer that moves between the preparation and the sleep is not missed.
  auto mine = *sleeper.OpenGroup(5, {0, 1});
  ticket = sleeper.PrepareToPark();
  auto theirs = *world.transport(0).OpenGroup(5, {0, 1});
  const int64_t far_ns = MonotonicClock().NowNs() + 60'000'000'000;
  sleeper.Park(ticket, far_ns);
  EXPECT_LT(MonotonicClock().NowNs(), far_ns);
}

// Workers that were not started alike learn it when they meet, all of them the same.
void ExpectRefusal(const std::vector<absl::Status>& statuses) {
  for (const absl::Status& status : statuses) {
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_EQ(status.message(), statuses[0].message());
    EXPECT_NE(status.message().find("worker 0 has nothing special, worker 2 has rules"),
              std::string::npos)
        << status;
  }
}

TEST(TermsTest, DifferentOnesAreRefusedInSharedMemory) {
  std::vector<absl::Status> statuses(3);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank] {
      statuses[static_cast<size_t>(rank)] =
          StartShmTransport({.job = "terms-" + std::to_string(getpid()),
                             .rank = rank,
                             .size = 3,
                             .arena_bytes = 1 << 20,
                             .terms = rank == 2 ? "rules" : ""},
                            MonotonicClock())
              .status();
    });
  }
  for (std::thread& thread : threads) thread.join();
  ExpectRefusal(statuses);
}

TEST(TermsTest, DifferentOnesAreRefusedOnANetwork) {
  std::vector<std::unique_ptr<NetStart>> starts;
  std::vector<std::string> payloads;
  for (int rank = 0; rank < 3; ++rank) {
    starts.push_back(*StartNetTransport({.job = "net-terms-" + std::to_string(getpid()),
                                         .rank = rank,
                                         .size = 3,
                                         .ip = "127.0.0.1",
                                         .arena_bytes = 1 << 20,
                                         .terms = rank == 2 ? "rules" : ""},
                                        MonotonicClock()));
    payloads.push_back(starts.back()->payload());
  }
  std::vector<absl::Status> statuses;
  for (const std::unique_ptr<NetStart>& start : starts) {
    statuses.push_back(start->Connect(payloads, "the key of this job").status());
  }
  ExpectRefusal(statuses);
}

}  // namespace
}  // namespace syncopate::transport
