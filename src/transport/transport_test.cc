// The conformance suite: what every transport promises, tested on each of them. Here are groups, gates,
// data and losses; transport_mail_test.cc has mail.
#include "transport/transport.h"

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "transport/transport_testing.h"

namespace syncopate::transport {
namespace {

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
        std::make_pair("tls", MakeWorld([](int size) -> std::unique_ptr<World> {
                         return std::make_unique<NetTestWorld>(size, size, "tcp", 2, true);
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

}  // namespace
}  // namespace syncopate::transport
