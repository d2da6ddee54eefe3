// The programs of a group's calls: at once by a quick choice, then by the plan, from the same call on for
// all members, however long each of them plans.
#include "worker/call_plans.h"

#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "gtest/gtest.h"
#include "model/topology_makers.h"
#include "worker/program_cache.h"

namespace syncopate::worker {
namespace {

constexpr int64_t kLongNs = 60'000'000'000;
constexpr int64_t kDeadlineNs = 1'000;  // of every call; its number is all that is looked at

// Racks behind a narrow uplink: there the plan is not what the quick choice takes.
Network Racks() {
  Network network;
  network.topology = TwoRackTopology(4, 1e9, 1e8, 1e-5);
  network.topology.version = 1;
  network.placement = *PlaceInOrder(network.topology, 8);
  return network;
}

plan::ProgramKey KeyOf(std::vector<int> ranks, uint64_t elements, int self = 0) {
  plan::ProgramKey key;
  key.request.workers = static_cast<int>(ranks.size());
  key.request.active.resize(ranks.size());
  std::iota(key.request.active.begin(), key.request.active.end(), 0);
  key.request.elements = elements;
  key.self = self;
  key.ranks = std::move(ranks);
  key.network_version = 1;
  return key;
}

const std::vector<int> kAll = {0, 1, 2, 3, 4, 5, 6, 7};

TEST(ProgramCacheTest, GroupsInLikePlacesShareTheirPrograms) {
  ProgramCache cache(2, Racks());
  const auto program = [&](std::vector<int> ranks) {
    return cache.Get(KeyOf(ranks, 10'000))->program;
  };
  EXPECT_EQ(program({0, 1, 2}), program({1, 3, 0}));
  EXPECT_EQ(program({0, 1, 4}), program({2, 3, 7}));
  EXPECT_NE(program({0, 1, 2}), program({0, 1, 4}));
  EXPECT_EQ(cache.GetQuick(KeyOf({0, 1, 4}, 10'000))->program,
            cache.GetQuick(KeyOf({2, 3, 7}, 10'000))->program);
  // On one host it does not matter who they are at all.
  ProgramCache host(2);
  EXPECT_EQ(host.Get(KeyOf({0, 1, 4}, 10'000))->program,
            host.Get(KeyOf({2, 3, 7}, 10'000))->program);
}

TEST(ProgramCacheTest, ThePlanComesBesideTheQuickChoice) {
  ProgramCache cache(2, Racks());
  const plan::ProgramKey key = KeyOf(kAll, 1'000'000);
  absl::StatusOr<ProgramCache::Offer> offer = cache.Find(key);
  ASSERT_TRUE(offer.ok()) << offer.status();
  EXPECT_TRUE(offer->better);
  EXPECT_EQ(offer->now.program, cache.GetQuick(key)->program);
  const std::shared_ptr<ComingPlan> coming = cache.Order(key);
  ASSERT_TRUE(coming->WaitUntil(MonotonicClock().NowNs() + kLongNs));
  ASSERT_TRUE(coming->result().ok()) << coming->result().status();
  EXPECT_EQ(coming->result()->program, cache.Get(key)->program);
  EXPECT_TRUE(cache.Order(key)->done());
  // For an algorithm that is named there is no quick choice, and on one host nothing better.
  plan::ProgramKey named = key;
  named.algorithm = "double-tree";
  EXPECT_EQ(cache.Find(named)->now.program, nullptr);
  EXPECT_FALSE(cache.Knows(named)) << "this thread has planned";
  ProgramCache host(2);
  EXPECT_NE(host.Find(key)->now.program, nullptr);
  EXPECT_FALSE(host.Find(key)->better);
}

// A plan for a group that is gone is not made.
TEST(ProgramCacheTest, PlansThatNobodyWaitsForAreNotMade) {
  ProgramCache cache(2, Racks());
  std::shared_ptr<ComingPlan> last;
  for (uint64_t elements = 1; elements <= 200; ++elements) {
    last = cache.Order(KeyOf(kAll, 100'000 * elements));
  }
  ASSERT_TRUE(last->WaitUntil(MonotonicClock().NowNs() + kLongNs));
  EXPECT_FALSE(cache.Order(KeyOf(kAll, 100'000 * 150))->done());
}

TEST(ProgramCacheTest, VersionsThatAreNotKnownAreRefused) {
  ProgramCache cache(2, Racks());
  EXPECT_TRUE(cache.CheckVersion(0).ok());
  EXPECT_TRUE(cache.CheckVersion(1).ok());
  EXPECT_EQ(cache.CheckVersion(2).code(), absl::StatusCode::kFailedPrecondition);
  Network network = Racks();
  for (uint64_t version = 2; version <= 70; ++version) {
    network.topology.version = version;
    cache.Publish(version, network.topology);
    EXPECT_TRUE(cache.CheckVersion(version).ok());
  }
  EXPECT_TRUE(cache.CheckVersion(1).ok()) << "the first stays";
  EXPECT_FALSE(cache.CheckVersion(2).ok());
  EXPECT_EQ(ProgramCache(2).CheckVersion(1).code(), absl::StatusCode::kFailedPrecondition);
}

// The votes of a group whose members are all in this test. A vote is over when all have voted.
class Votes {
 public:
  explicit Votes(size_t members) : members_(members), next_(members) {}

  absl::StatusOr<std::unique_ptr<PlanVote>> Start(size_t member, bool yes) {
    const size_t number = next_[member]++;
    if (rounds_.size() <= number) rounds_.emplace_back(std::make_shared<Round>());
    Round& round = *rounds_[number];
    ++round.voted;
    round.all = round.all && yes;
    return std::make_unique<Vote>(rounds_[number], members_);
  }
  bool Failed() const { return failed_; }

 private:
  struct Round {
    size_t voted = 0;
    bool all = true;
  };
  class Vote final : public PlanVote {
   public:
    Vote(std::shared_ptr<Round> round, size_t members)
        : round_(std::move(round)), members_(members) {}
    absl::StatusOr<bool> Outcome(int64_t deadline_ns) override {
      EXPECT_EQ(deadline_ns, kDeadlineNs) << "that of the call which needs the outcome";
      if (round_->voted < members_) return absl::DeadlineExceededError("somebody has not voted");
      return round_->all;
    }
    bool Done() const override { return round_->voted == members_; }

   private:
    const std::shared_ptr<Round> round_;
    const size_t members_;
  };

  const size_t members_;
  bool failed_ = false;
  std::vector<size_t> next_;  // by member
  std::vector<std::shared_ptr<Round>> rounds_;
};

// Members with caches of their own. Some have seen like groups before and have the plan at once, others
// are still planning: all run the same at each call, and in the end the plan.
TEST(CallPlansTest, AllMembersChangeAtTheSameCall) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    constexpr size_t kMembers = 4;
    std::vector<std::unique_ptr<ProgramCache>> caches;
    std::vector<std::unique_ptr<CallPlans>> plans;
    Votes votes(kMembers);
    const std::vector<int> ranks = {0, 1, 4, 5};
    for (size_t member = 0; member < kMembers; ++member) {
      caches.push_back(std::make_unique<ProgramCache>(2, Racks()));
      if (random.Below(2) == 0) {
        ASSERT_TRUE(
            caches.back()->Get(KeyOf({2, 3, 6, 7}, 1'000'000, static_cast<int>(member))).ok());
      }
      plans.push_back(std::make_unique<CallPlans>(
          *caches.back(), [&votes, member](bool yes) { return votes.Start(member, yes); }));
    }
    const uint64_t planned = caches[0]->Get(KeyOf(ranks, 1'000'000))->program->digest;
    std::optional<int> changed;
    for (int call = 0; call < 5000 && !(changed && call > *changed + 3); ++call) {
      uint64_t digest = 0;
      for (size_t member = 0; member < kMembers; ++member) {
        const plan::ProgramKey key = KeyOf(ranks, 1'000'000, static_cast<int>(member));
        absl::StatusOr<CallPlans::Kind*> kind = plans[member]->KindOf(key);
        ASSERT_TRUE(kind.ok()) << kind.status();
        ASSERT_TRUE(plans[member]->BeforeCall(**kind, 1, kDeadlineNs).ok());
        const uint64_t mine = (*kind)->serving.program->digest;
        if (member == 0) digest = mine;
        ASSERT_EQ(mine, digest) << "seed " << seed << ", call " << call;
        // A member may wait for its plan in the middle of anything.
        if (call == 10 && (*kind)->coming != nullptr) {
          ASSERT_TRUE((*kind)->coming->WaitUntil(MonotonicClock().NowNs() + kLongNs));
        }
      }
      if (digest == planned && !changed) changed = call;
    }
    ASSERT_TRUE(changed.has_value()) << "seed " << seed;
    EXPECT_GE(*changed, 3);
    EXPECT_LE(*changed, 17) << "all had it from call 10 on";
  }
}

TEST(CallPlansTest, TheOldPlanServesWhileTheNewVersionIsPlanned) {
  ProgramCache cache(2, Racks());
  Votes votes(1);
  CallPlans plans(cache, [&](bool yes) { return votes.Start(0, yes); });
  CallPlans::Kind& kind = **plans.KindOf(KeyOf(kAll, 1'000'000));
  ASSERT_TRUE(plans.BeforeCall(kind, 1, kDeadlineNs).ok());
  EXPECT_EQ(kind.coming, nullptr) << "it may be the only call";
  ASSERT_TRUE(plans.BeforeCall(kind, 1, kDeadlineNs).ok());
  ASSERT_NE(kind.coming, nullptr);
  ASSERT_TRUE(kind.coming->WaitUntil(MonotonicClock().NowNs() + kLongNs));
  for (int call = 2; call < 4; ++call) ASSERT_TRUE(plans.BeforeCall(kind, 1, kDeadlineNs).ok());
  ASSERT_TRUE(CallPlans::IsSettled(kind, 1));
  const auto old = kind.serving.program;
  EXPECT_EQ(old, cache.Get(KeyOf(kAll, 1'000'000))->program);
  Network faster = Racks();
  faster.topology = TwoRackTopology(4, 1e9, 4e9, 1e-5);
  faster.topology.version = 2;
  cache.Publish(2, faster.topology);
  ASSERT_FALSE(CallPlans::IsSettled(kind, 2));
  ASSERT_TRUE(plans.BeforeCall(kind, 2, kDeadlineNs).ok());
  EXPECT_EQ(kind.serving.program, old);
  EXPECT_EQ(kind.key.network_version, 1u);
  ASSERT_TRUE(kind.coming->WaitUntil(MonotonicClock().NowNs() + kLongNs));
  for (int call = 1; call < 4; ++call) ASSERT_TRUE(plans.BeforeCall(kind, 2, kDeadlineNs).ok());
  plan::ProgramKey key = KeyOf(kAll, 1'000'000);
  key.network_version = 2;
  EXPECT_EQ(kind.serving.program, cache.Get(key)->program);
  EXPECT_EQ(kind.key.network_version, 2u);
  EXPECT_TRUE(CallPlans::IsSettled(kind, 2));
}

// Calls 2, 4, 8 ... vote beside, and the next one needs the outcome.
TEST(CallPlansTest, SaysWhenACallWouldWaitForTheVotesOfOthers) {
  ProgramCache cache(2, Racks());
  Votes votes(2);
  CallPlans plans(cache, [&](bool yes) { return votes.Start(0, yes); });
  const plan::ProgramKey key = KeyOf(kAll, 1'000'000);
  EXPECT_FALSE(plans.WouldWait(key));
  CallPlans::Kind& kind = **plans.KindOf(key);
  for (int call = 0; call < 3; ++call) {
    EXPECT_FALSE(plans.WouldWait(key)) << call;
    ASSERT_TRUE(plans.BeforeCall(kind, 1, kDeadlineNs).ok());
  }
  ASSERT_NE(kind.vote, nullptr);
  EXPECT_TRUE(plans.WouldWait(key));
  EXPECT_TRUE(plans.WouldWait(key)) << "asking changes nothing";
  ASSERT_TRUE(votes.Start(1, false).ok());
  EXPECT_FALSE(plans.WouldWait(key));
  ASSERT_TRUE(plans.BeforeCall(kind, 1, kDeadlineNs).ok());
}

// As for a call for which the tuner tries other sub-chunks. The thread that asks never plans.
TEST(CallPlansTest, APlanIsMadeBesideAndAskedForOnce) {
  ProgramCache cache(2, Racks());
  Votes votes(1);
  CallPlans plans(cache, [&](bool yes) { return votes.Start(0, yes); });
  plan::ProgramKey key = KeyOf(kAll, 1'000'000);
  key.algorithm = "forest";
  key.chunk_bytes = 64 << 10;
  EXPECT_FALSE(plans.Get(key).ok());
  EXPECT_FALSE(cache.Knows(key)) << "this thread has planned";
  plan::ProgramKey none = key;
  none.algorithm = "no such algorithm";
  for (const plan::ProgramKey& each : {key, none}) {
    const std::shared_ptr<ComingPlan> coming = plans.Awaited(each);
    if (coming == nullptr) continue;  // this thread was held up
    EXPECT_FALSE(plans.Get(each).ok() && !coming->done());
    ASSERT_TRUE(coming->WaitUntil(MonotonicClock().NowNs() + kLongNs));
    EXPECT_EQ(plans.Awaited(each), nullptr);
  }
  EXPECT_TRUE(cache.Knows(key));
  const absl::StatusOr<PlannedProgram> made = plans.Get(key);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->program, cache.Get(key)->program);
  EXPECT_EQ(made->chunk_bytes, key.chunk_bytes);
  EXPECT_EQ(plans.Awaited(none), nullptr) << "it is not tried again and again";
  EXPECT_EQ(plans.Get(none).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(plans.KindOf(none).status().code(), absl::StatusCode::kNotFound);
}

// Also where the network changes: the plan of the old version serves.
TEST(CallPlansTest, ANamedAlgorithmIsPlannedBeside) {
  ProgramCache cache(2, Racks());
  Votes votes(1);
  CallPlans plans(cache, [&](bool yes) { return votes.Start(0, yes); });
  plan::ProgramKey key = KeyOf(kAll, 1'000'000);
  key.algorithm = "double-tree";
  if (const std::shared_ptr<ComingPlan> coming = plans.Awaited(key)) {
    ASSERT_TRUE(coming->WaitUntil(MonotonicClock().NowNs() + kLongNs));
  }
  CallPlans::Kind& kind = **plans.KindOf(key);
  const auto old = kind.serving.program;
  EXPECT_TRUE(CallPlans::IsSettled(kind, 1));
  Network faster = Racks();
  faster.topology = TwoRackTopology(4, 1e9, 4e9, 1e-5);
  faster.topology.version = 2;
  cache.Publish(2, faster.topology);
  ASSERT_TRUE(plans.BeforeCall(kind, 2, kDeadlineNs).ok());
  EXPECT_EQ(kind.serving.program, old);
  ASSERT_NE(kind.coming, nullptr);
  ASSERT_TRUE(kind.coming->WaitUntil(MonotonicClock().NowNs() + kLongNs));
  for (int call = 1; call < 4; ++call) ASSERT_TRUE(plans.BeforeCall(kind, 2, kDeadlineNs).ok());
  EXPECT_EQ(kind.key.network_version, 2u);
  EXPECT_TRUE(CallPlans::IsSettled(kind, 2));
}

TEST(CallPlansTest, NothingChangesAfterAVoteThatFailed) {
  ProgramCache cache(2, Racks());
  Votes votes(2);  // the other one never votes
  CallPlans plans(cache, [&](bool yes) { return votes.Start(0, yes); });
  CallPlans::Kind& kind = **plans.KindOf(KeyOf(kAll, 1'000'000));
  const auto quick = kind.serving.program;
  for (int call = 0; call < 10; ++call) ASSERT_TRUE(plans.BeforeCall(kind, 1, kDeadlineNs).ok());
  EXPECT_EQ(kind.serving.program, quick);
  EXPECT_TRUE(CallPlans::IsSettled(kind, 1));
}

}  // namespace
}  // namespace syncopate::worker
