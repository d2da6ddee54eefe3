// Sessions in shared memory: what only shows after very many, and what is left of a group that its first
// member has let go.
#include "transport/shm/shm_session.h"

#include <unistd.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "gtest/gtest.h"

namespace syncopate::transport::shm {
namespace {

class ShmSessionTest : public ::testing::Test {
 protected:
  ShmSessionTest() {
    static int jobs = 0;
    const std::string job = "sessions-" + std::to_string(getpid()) + "-" + std::to_string(++jobs);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < 2; ++rank) {
      threads.emplace_back([&, rank] {
        peers_[rank] = *Peers::Meet({.job = job, .rank = rank, .size = 2, .arena_bytes = 1 << 20},
                                    MonotonicClock());
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (int rank = 0; rank < 2; ++rank) {
      contexts_[rank] = std::make_unique<SessionContext>(*peers_[rank]);
    }
  }

  std::unique_ptr<Peers> peers_[2];
  std::unique_ptr<SessionContext> contexts_[2];
};

// The first member ended after the death of another, without the call that this member had begun. The
// gate was taken for passed, and the call failed because of "something else" that the first one runs.
TEST_F(ShmSessionTest, ACallThatTheFirstMemberNeverMadeHasNotPassedWhenItLetsGo) {
  auto first = *ShmGroupPort::Make(*contexts_[0], 77, {0, 1});
  const auto second = *ShmGroupPort::Make(*contexts_[1], 77, {0, 1});
  {  // An operation that both have made.
    auto a = *first->Open({.sequence = 0});
    const auto b = *second->Open({.sequence = 0});
    for (const Gate gate : {Gate::kStart, Gate::kFinish}) {
      ASSERT_TRUE(a->Enter(gate, 0));
      ASSERT_TRUE(b->Enter(gate, 1));
    }
    a.reset();
    first.reset();
    EXPECT_EQ(b->State(Gate::kStart), GateState::kPassed);
    EXPECT_EQ(b->State(Gate::kFinish), GateState::kPassed);
  }
  const auto session = *second->Open({.sequence = 1});
  EXPECT_EQ(session->State(Gate::kStart), GateState::kOpen);
  EXPECT_FALSE(session->Enter(Gate::kStart, 1));
  EXPECT_EQ(session->State(Gate::kStart), GateState::kOpen);
  EXPECT_EQ(session->Break(Gate::kStart, BreakReason::kLoss), GateState::kBroken);
  EXPECT_EQ(session->State(Gate::kStart), GateState::kBroken);
  EXPECT_TRUE(session->WhyBroken(Gate::kStart).for_loss);
}

// A flag is up when it holds the generation of its session. The generation that followed 2^32 - 1
// was 0, which is what flags hold that nobody has raised yet.
TEST_F(ShmSessionTest, UntouchedFlagsStayDownAfterFourBillionSessions) {
  std::unique_ptr<ShmGroupPort> ports[2];
  std::unique_ptr<Session> sessions[2];
  for (int rank = 0; rank < 2; ++rank) {
    contexts_[rank]->generation = 0xffffffff;
    ports[rank] = *ShmGroupPort::Make(*contexts_[rank], 77, {0, 1});
    sessions[rank] = *ports[rank]->Open(
        {.sequence = 0, .data = *peers_[rank]->arena().Allocate(64), .data_bytes = 64, .steps = 4});
  }
  for (int rank = 0; rank < 2; ++rank) {
    ASSERT_TRUE(sessions[rank]->Enter(Gate::kStart, rank));
  }
  const Extent where = {Space::kData, 0, 8};
  EXPECT_EQ(sessions[1]->Arrived(0, 3, where), nullptr);
  EXPECT_FALSE(sessions[0]->Consumed(1, 3, 2));
  sessions[0]->Offer(3, 1, nullptr, where);
  EXPECT_NE(sessions[1]->Arrived(0, 3, where), nullptr);
  sessions[1]->Consume(2, 0, 3);
  EXPECT_TRUE(sessions[0]->Consumed(1, 3, 2));
}

// What a broken group had taken was never given back, so a job could lose 256 groups in its life.
TEST_F(ShmSessionTest, BrokenGroupsGiveTheirEntriesBack) {
  for (uint64_t key = 1; key <= 1000; ++key) {
    std::unique_ptr<ShmGroupPort> ports[2];
    std::unique_ptr<Session> sessions[2];
    for (int rank = 0; rank < 2; ++rank) {
      auto port = ShmGroupPort::Make(*contexts_[rank], key, {0, 1});
      ASSERT_TRUE(port.ok()) << "group " << key << ": " << port.status();
      ports[rank] = *std::move(port);
      sessions[rank] = *ports[rank]->Open({.sequence = 0});
    }
    ASSERT_TRUE(sessions[0]->Enter(Gate::kStart, 0));
    ASSERT_EQ(sessions[1]->Break(Gate::kStart, BreakReason::kTime), GateState::kBroken);
    ASSERT_EQ(sessions[0]->State(Gate::kStart), GateState::kBroken);
  }
}

TEST_F(ShmSessionTest, AMemberThatHoldsABrokenGroupStillSeesWhyItBroke) {
  auto first = *ShmGroupPort::Make(*contexts_[0], 5000, {0, 1});
  const auto second = *ShmGroupPort::Make(*contexts_[1], 5000, {0, 1});
  const auto theirs = *second->Open({.sequence = 0});
  ASSERT_TRUE(theirs->Enter(Gate::kStart, 1));
  {
    const auto ours = *first->Open({.sequence = 0});
    ASSERT_EQ(ours->Break(Gate::kStart, BreakReason::kLoss), GateState::kBroken);
  }
  first.reset();
  // As many groups as there are entries, and more.
  for (uint64_t key = 1; key <= 600; ++key) {
    ASSERT_TRUE(ShmGroupPort::Make(*contexts_[0], key, {0, 1}).ok()) << key;
  }
  EXPECT_EQ(theirs->State(Gate::kStart), GateState::kBroken);
  EXPECT_TRUE(theirs->WhyBroken(Gate::kStart).for_loss);
}

// A member that had let go of the group before another made its part was waited for ever after.
TEST_F(ShmSessionTest, AMemberThatWasThereBeforeIsNotWaitedFor) {
  for (uint64_t key = 1; key <= 3 * kGroupsMax; ++key) {
    if (key % 2 == 0) {
      ASSERT_TRUE(ShmGroupPort::Make(*contexts_[0], key, {0, 1}).ok());  // made and let go
    } else {
      contexts_[0]->entries.Renounce(key);
    }
    auto port = ShmGroupPort::Make(*contexts_[1], key, {0, 1});
    ASSERT_TRUE(port.ok()) << "group " << key << ": " << port.status();
    EXPECT_TRUE((*port)->Renounced());
    const auto session = *(*port)->Open({.sequence = 0});
    ASSERT_EQ(session->Break(Gate::kStart, BreakReason::kLoss), GateState::kBroken);
  }
}

// A job of many short groups takes no more memory than one of few.
TEST_F(ShmSessionTest, GroupsOneAfterTheOtherUseTheSameEntry) {
  const GroupEntry* entry = nullptr;
  for (uint64_t key = 1; key <= 1000; ++key) {
    const uint64_t mixed = key * 0x9e3779b97f4a7c15u | 1;
    ASSERT_EQ(FindEntry(peers_[0]->own(), mixed).entry, nullptr);
    const auto port = *ShmGroupPort::Make(*contexts_[0], mixed, {0, 1});
    const FoundEntry found = FindEntry(peers_[1]->control(0), mixed);
    ASSERT_NE(found.entry, nullptr);
    const FoundEntry own = FindEntry(peers_[0]->own(), mixed);
    if (entry == nullptr) entry = own.entry;
    ASSERT_EQ(own.entry, entry);
    EXPECT_FALSE(ShmGroupPort::Make(*contexts_[0], mixed, {0, 1}).ok()) << "its key is in use";
    // Each key had its own place in one of 32 pages, which all workers of the host came to map.
    const auto* index = reinterpret_cast<const std::byte*>(peers_[0]->own().index);
    EXPECT_LT(reinterpret_cast<const std::byte*>(own.key) - index, 4096);
  }
}

TEST_F(ShmSessionTest, TheLowestFreeEntryIsTheNext) {
  Control& control = peers_[1]->control(0);
  const auto entry_of = [&](uint64_t key) {
    return FindEntry(control, key).entry - control.groups;
  };
  std::vector<std::unique_ptr<ShmGroupPort>> ports;
  for (uint64_t key = 1; key <= 9; ++key) {
    ports.push_back(*ShmGroupPort::Make(*contexts_[0], key, {0, 1}));
    ASSERT_EQ(entry_of(key), static_cast<ptrdiff_t>(key - 1));
  }
  for (const size_t let_go : {2, 7, 4}) ports[let_go].reset();
  for (const uint64_t key : {11, 12, 13}) {
    ports.push_back(*ShmGroupPort::Make(*contexts_[0], key, {0, 1}));
  }
  EXPECT_EQ(entry_of(11), 2);
  EXPECT_EQ(entry_of(12), 4);
  EXPECT_EQ(entry_of(13), 7);
}

// However many are alive, all are found.
TEST_F(ShmSessionTest, AllEntriesCanBeInUse) {
  std::vector<std::unique_ptr<ShmGroupPort>> ports;
  for (uint64_t key = 1; key <= kGroupsMax; ++key) {
    auto port = ShmGroupPort::Make(*contexts_[0], key * 0x9e3779b97f4a7c15u | 1, {0, 1});
    ASSERT_TRUE(port.ok()) << key << ": " << port.status();
    ports.push_back(*std::move(port));
  }
  for (uint64_t key = 1; key <= kGroupsMax; ++key) {
    ASSERT_NE(FindEntry(peers_[1]->control(0), key * 0x9e3779b97f4a7c15u | 1).entry, nullptr);
  }
  EXPECT_EQ(ShmGroupPort::Make(*contexts_[0], 4711, {0, 1}).status().code(),
            absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace syncopate::transport::shm
