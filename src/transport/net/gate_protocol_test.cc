// The gate protocol, played with messages that are late, and members that are lost at any
// moment: whatever happens, the survivors end with the same.
#include "transport/net/gate_protocol.h"

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncopate::transport::net {
namespace {

using Mode = GateProtocol::Mode;

// A group in one process. Messages between two members keep their order; everything else is drawn.
class Group {
 public:
  Group(int members, uint64_t seed) : random_(seed), lost_(static_cast<size_t>(members), false) {
    std::vector<int32_t> ranks;
    for (int member = 0; member < members; ++member) ranks.push_back(member);
    for (int member = 0; member < members; ++member) {
      members_.push_back(std::make_unique<GateProtocol>(ranks, member));
      knows_.emplace_back();
    }
  }

  int size() const { return static_cast<int>(members_.size()); }
  GateProtocol& operator[](int member) { return *members_[static_cast<size_t>(member)]; }
  bool lost(int member) const { return lost_[static_cast<size_t>(member)]; }
  Random& random() { return random_; }

  void Collect() {
    for (int from = 0; from < size(); ++from) {
      for (GateProtocol::Outgoing& outgoing : (*this)[from].TakeMessages()) {
        if (!lost(from)) wires_[{from, outgoing.to}].push_back(std::move(outgoing.message));
      }
      for (const GateProtocol::Provision& provision : (*this)[from].TakeProvisions()) {
        for (const int needy : provision.needy) {
          if (!lost(from)) results_.push_back({from, needy, provision.sequence});
        }
      }
    }
  }

  // Delivers one message, result or piece of news about a loss; false if there is none.
  bool Step() {
    Collect();
    std::vector<std::pair<int, int>> ready;
    for (const auto& [wire, queue] : wires_) {
      if (!queue.empty() && !lost(wire.second)) ready.push_back(wire);
    }
    std::vector<int> uninformed;
    for (int member = 0; member < size(); ++member) {
      if (!lost(member) && knows_[static_cast<size_t>(member)].size() < order_.size()) {
        uninformed.push_back(member);
      }
    }
    const size_t choices = ready.size() + results_.size() + uninformed.size();
    if ((choices == 0 || random_.Below(2) == 0) && TakeResults()) return true;
    if (choices == 0) return false;
    size_t choice = random_.Below(choices);
    if (choice < ready.size()) {
      auto& queue = wires_[ready[choice]];
      const GateMessage message = std::move(queue.front());
      queue.pop_front();
      const auto [from, to] = ready[choice];
      const auto& known = knows_[static_cast<size_t>(to)];
      // A worker does not listen to one that it knows to be lost.
      if (std::find(known.begin(), known.end(), from) == known.end()) {
        (*this)[to].Receive(from, message);
      }
      return true;
    }
    choice -= ready.size();
    if (choice < results_.size()) {
      const Result result = results_[choice];
      results_.erase(results_.begin() + static_cast<ptrdiff_t>(choice));
      if (!lost(result.to) && (*this)[result.to].Held(result.sequence)) {
        (*this)[result.to].ResultArrived(result.sequence);
        came_.insert({result.to, result.sequence});
      }
      return true;
    }
    Inform(uninformed[choice - results_.size()]);
    return true;
  }

  // Members take results that have come, if they may. True if one did.
  bool TakeResults() {
    for (const auto& [member, sequence] : came_) {
      if (lost(member) || !(*this)[member].TakeResult(sequence)) continue;
      taken_.insert({member, sequence});
      return true;
    }
    return false;
  }
  bool has_result(int member, uint64_t sequence) const {
    return taken_.count({member, sequence}) > 0;
  }

  void Lose(int member) {
    lost_[static_cast<size_t>(member)] = true;
    order_.push_back(member);
    // What it had said before may still arrive; what it has not said, never.
    for (auto& [wire, queue] : wires_) {
      if (wire.first == member) queue.resize(random_.Below(queue.size() + 1));
    }
    std::erase_if(results_, [&](const Result& r) { return r.from == member; });
  }

 private:
  struct Result {
    int from, to;
    uint64_t sequence;
  };

  void Inform(int member) {
    auto& known = knows_[static_cast<size_t>(member)];
    const int lost_member = order_[known.size()];
    known.push_back(lost_member);
    // Its connection is gone: results from it too.
    (*this)[member].Lose(lost_member);
  }

  Random random_;
  std::vector<std::unique_ptr<GateProtocol>> members_;
  std::vector<bool> lost_;
  std::vector<int> order_;               // of losses
  std::vector<std::vector<int>> knows_;  // by member
  std::map<std::pair<int, int>, std::deque<GateMessage>> wires_;
  std::vector<Result> results_;
  std::set<std::pair<int, uint64_t>> came_, taken_;  // results, by member
};

TEST(GateProtocolTest, GatesPassWhenAllHaveEntered) {
  Group group(4, 1);
  for (int m = 0; m < 4; ++m) {
    group[m].Open(0, Mode::kAwaited, {.digest = 7, .weight = 1.0 + m}, /*awaits_start=*/true);
    EXPECT_TRUE(group[m].Enter(0, Gate::kStart, true));
    while (group.Step()) {
    }
    for (int other = 0; other <= m; ++other) {
      EXPECT_EQ(group[other].State(0, Gate::kStart),
                m == 3 ? GateState::kPassed : GateState::kOpen);
    }
  }
  EXPECT_EQ(group[2].HelloOf(0, 3).weight, 4.0);
}

TEST(GateProtocolTest, SmallEndingsAreToldTogether) {
  Group group(3, 1);
  size_t messages = 0;
  for (uint64_t sequence = 0; sequence < 8; ++sequence) {
    for (int m = 0; m < 3; ++m) {
      group[m].Open(sequence, Mode::kShared, {}, /*awaits_start=*/false);
      EXPECT_TRUE(group[m].Enter(sequence, Gate::kFinish, /*prompt=*/false));
      for (GateProtocol::Outgoing& outgoing : group[m].TakeMessages()) {
        ++messages;
        group[outgoing.to].Receive(m, outgoing.message);
      }
    }
  }
  for (int m = 0; m < 3; ++m) {
    for (GateProtocol::Outgoing& outgoing : group[m].TakeMessages()) {
      ++messages;
      group[outgoing.to].Receive(m, outgoing.message);
    }
    EXPECT_EQ(group[m].State(0, Gate::kFinish), GateState::kPassed) << m;
  }
  EXPECT_LE(messages, 4u) << "two members tell the arbiter once, and it tells both once";
}

// A group that is used once would else keep what its operation used until everybody's next heartbeat.
TEST(GateProtocolTest, WhoBeginsNothingMorePutsNothingOff) {
  for (const bool before : {false, true}) {  // it ends its last operation
    Group group(3, 4);
    for (int member = 0; member < 3; ++member) {
      group[member].Open(0, Mode::kShared, {}, /*awaits_start=*/false);
      if (before) group[member].Hurry();
    }
    for (int member = 0; member < 3; ++member) {
      EXPECT_TRUE(group[member].Enter(0, Gate::kFinish, /*prompt=*/false));
      if (!before) group[member].Hurry();
    }
    while (group.Step()) {
    }
    for (int member = 0; member < 3; ++member) {
      EXPECT_EQ(group[member].State(0, Gate::kFinish), GateState::kPassed) << member;
    }
  }
}

TEST(GateProtocolTest, AnswersToWhoIsLateNameTheMissing) {
  Group group(3, 1);
  group[0].Open(0, Mode::kShared, {}, false);
  group[2].Open(0, Mode::kShared, {}, false);
  group[2].Ask(0);
  while (group.Step()) {
  }
  for (const int m : {0, 2}) {
    EXPECT_EQ(group[m].State(0, Gate::kFinish), GateState::kBroken);
    EXPECT_TRUE(group[m].Entered(0, Gate::kStart, 0));
    EXPECT_FALSE(group[m].Entered(0, Gate::kStart, 1));
  }
  // Who comes now finds it broken.
  group[1].Open(0, Mode::kShared, {}, false);
  EXPECT_EQ(group[1].State(0, Gate::kFinish), GateState::kBroken);
}

// The arbiter may never make the group: it must learn from the question whom to ask.
TEST(GateProtocolTest, AQuestionNamesTheMembers) {
  Group group(3, 1);
  group[2].Open(0, Mode::kShared, {}, /*awaits_start=*/false);
  group[2].Ask(0);
  const auto messages = group[2].TakeMessages();
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_EQ(messages[0].message.kind, GateMessage::Kind::kAsk);
  EXPECT_THAT(messages[0].message.ranks, ::testing::ElementsAre(0, 1, 2));
}

// A member made a group without the first lost worker when the others did not know of it yet. When they
// knew, they knew of a second one, too, and never made the group: the member waited in it for a
// decision of an arbiter that had not heard of it, until its time was up.
TEST(GateProtocolTest, AnArbiterThatMayNotKnowTheGroupIsAskedWhenAMemberIsLost) {
  Group group(4, 1);
  group[2].Open(0, Mode::kShared, {}, /*awaits_start=*/false);
  EXPECT_THAT(group[2].TakeMessages(), ::testing::IsEmpty());
  group[2].Lose(3);
  auto messages = group[2].TakeMessages();
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_EQ(messages[0].to, 0);
  EXPECT_EQ(messages[0].message.kind, GateMessage::Kind::kAsk);
  EXPECT_THAT(messages[0].message.ranks, ::testing::ElementsAre(0, 1, 2, 3));
  // The next one as well.
  group[2].Lose(0);
  messages = group[2].TakeMessages();
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_EQ(messages[0].to, 1);
  EXPECT_EQ(messages[0].message.kind, GateMessage::Kind::kAsk);
}

// A member that has seen an operation pass and is done with it forgets it. Another one that has not
// heard of the passing, since the arbiter died, must not be told that it is broken.
TEST(GateProtocolTest, WhatOneMemberHasForgottenIsNotBrokenForAnother) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Group group(3, seed);
    for (int m = 0; m < 3; ++m) {
      group[m].Open(0, Mode::kAwaited, {}, /*awaits_start=*/false);
      EXPECT_TRUE(group[m].Enter(0, Gate::kFinish, /*prompt=*/true));
    }
    // The arbiter tells member 1 and dies before it tells member 2.
    for (const int m : {1, 2}) {
      for (GateProtocol::Outgoing& outgoing : group[m].TakeMessages()) {
        group[outgoing.to].Receive(m, outgoing.message);
      }
    }
    for (GateProtocol::Outgoing& outgoing : group[0].TakeMessages()) {
      if (outgoing.to == 1) group[1].Receive(0, outgoing.message);
    }
    EXPECT_EQ(group[1].State(0, Gate::kFinish), GateState::kPassed);
    group[1].Close(0);
    group.Lose(0);
    while (group.Step()) {
    }
    EXPECT_EQ(group[2].State(0, Gate::kFinish), GateState::kPassed);
  }
}

// The time of two members is up at once, and both ask. One of them waits for the result, while those
// that have it are done with it: a second round must not tell it that it has the result.
TEST(GateProtocolTest, AResultOnItsWayIsWaitedForThoughOthersAsk) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Group group(4, seed);
    for (int m = 0; m < 4; ++m) group[m].Open(0, Mode::kShared, {}, /*awaits_start=*/false);
    EXPECT_TRUE(group[1].Enter(0, Gate::kFinish, /*prompt=*/true));
    group[2].Ask(0);
    group[3].Ask(0);
    bool closed = false;
    while (group.Step()) {
      if (!closed && group[1].State(0, Gate::kFinish) == GateState::kPassed) {
        group.Collect();
        group[1].Close(0);
        closed = true;
      }
      for (const int m : {0, 2, 3}) {
        ASSERT_TRUE(group[m].State(0, Gate::kFinish) != GateState::kPassed ||
                    group.has_result(m, 0))
            << "seed " << seed << ": member " << m << " has no result";
      }
    }
    for (const int m : {0, 2, 3}) EXPECT_EQ(group[m].State(0, Gate::kFinish), GateState::kPassed);
  }
}

// Members 1 and 2 have given the result to their callers. Member 1 is to give it to member 3, and dies
// on the way: member 2 must not have let it go, or member 3 keeps its old data.
TEST(GateProtocolTest, AResultIsKeptUntilAllHaveItThoughItsProviderDies) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Group group(4, seed);
    for (int m = 0; m < 4; ++m) group[m].Open(0, Mode::kShared, {}, /*awaits_start=*/false);
    for (const int m : {1, 2}) EXPECT_TRUE(group[m].Enter(0, Gate::kFinish, /*prompt=*/true));
    group[3].Ask(0);
    const uint64_t dies_at = group.random().Below(20);
    std::set<int> closed;
    uint64_t step = 0;
    for (bool more = true; more || step <= dies_at; ++step) {
      if (step == dies_at) group.Lose(1);
      more = group.Step();
      for (int m = 0; m < 4; ++m) {
        const bool passed = group[m].State(0, Gate::kFinish) == GateState::kPassed;
        if (group.lost(m) || !passed || !closed.insert(m).second) continue;
        group.Collect();
        group[m].Close(0);
      }
    }
    for (const int m : {0, 2, 3}) {
      ASSERT_TRUE(closed.contains(m)) << "seed " << seed << ": member " << m << " has no result";
    }
  }
}

// Operations in which members finish when all have begun, one or two members lost anywhere, and
// somebody who asks because its time is up: survivors must agree on every operation.
class GateStorm : public ::testing::TestWithParam<Mode> {};

TEST_P(GateStorm, SurvivorsEndWithTheSame) {
  const Mode mode = GetParam();
  for (uint64_t seed = 1; seed <= 4000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const int n = static_cast<int>(random.Between(2, 5));
    const uint64_t operations = random.Below(4) + 1;
    Group group(n, seed * 31);
    const int losses = static_cast<int>(random.Below(static_cast<uint64_t>(std::min(n, 3))));
    const uint64_t steps = 40 + random.Below(120);
    std::vector<uint64_t> lose_at;
    for (int i = 0; i < losses; ++i) lose_at.push_back(random.Below(steps));
    const uint64_t ask_at = random.Below(2 * steps);
    const uint64_t ask_again_at = random.Below(2 * steps);
    std::vector<std::vector<bool>> opened(static_cast<size_t>(n)), sent(opened), finished(opened);
    for (auto& flags : opened) flags.resize(operations);
    for (auto& flags : sent) flags.resize(operations);
    for (auto& flags : finished) flags.resize(operations);
    // What became of it where a member is done with it.
    std::map<std::pair<int, uint64_t>, GateState> ended;
    std::set<std::pair<int, std::string>> failures;  // as members saw them
    const auto close = [&](int m, uint64_t sequence) {
      const GateState state = group[m].State(sequence, Gate::kFinish);
      if (state == GateState::kOpen || !opened[static_cast<size_t>(m)][sequence]) return;
      if (!ended.insert({{m, sequence}, state}).second) return;
      if (state == GateState::kBroken) {
        const Session::Failure why = group[m].FailureOf(sequence);
        std::string reason = why.for_loss ? "loss" : "time";
        for (const int other : why.missing) reason += " " + std::to_string(other);
        failures.insert({m, reason});
      }
      group.Collect();
      group[m].Close(sequence);
    };

    const auto act = [&](int m) {  // a member does something of its own
      const uint64_t sequence = random.Below(operations);
      auto&& is_open = opened[static_cast<size_t>(m)][sequence];
      if (!is_open) {
        group[m].Open(sequence, mode, {.digest = 3}, /*awaits_start=*/false);
        is_open = true;
        // A member that finds it broken or held sends nothing.
        sent[static_cast<size_t>(m)][sequence] =
            group[m].State(sequence, Gate::kStart) == GateState::kPassed;
        return;
      }
      if (group.has_result(m, sequence)) finished[static_cast<size_t>(m)][sequence] = true;
      if (random.Below(3) == 0) close(m, sequence);
      if (ended.contains({m, sequence})) return;
      // All data has come once all have sent it, also from those who are lost since.
      const bool complete =
          std::all_of(sent.begin(), sent.end(), [&](const auto& flags) { return flags[sequence]; });
      auto&& is_finished = finished[static_cast<size_t>(m)][sequence];
      if (!complete || is_finished || group[m].Held(sequence) ||
          group[m].State(sequence, Gate::kFinish) != GateState::kOpen) {
        return;
      }
      is_finished = group[m].Enter(sequence, Gate::kFinish, random.Below(2) == 0);
    };
    for (uint64_t step = 0; step < steps; ++step) {
      for (const uint64_t at : lose_at) {
        if (at != step) continue;
        const int victim = static_cast<int>(random.Below(static_cast<uint64_t>(n)));
        int left = 0;
        for (int m = 0; m < n; ++m) left += group.lost(m) ? 0 : 1;
        if (!group.lost(victim) && left > 1) group.Lose(victim);
      }
      const int m = static_cast<int>(random.Below(static_cast<uint64_t>(n)));
      if (!group.lost(m)) {
        if (step == ask_at || step == ask_again_at) {
          const uint64_t sequence = random.Below(operations);
          if (opened[static_cast<size_t>(m)][sequence] &&
              !finished[static_cast<size_t>(m)][sequence]) {
            group[m].Ask(sequence);
          }
        } else {
          act(m);
        }
      }
      if (random.Below(3) > 0) group.Step();
    }
    // Everybody begins and finishes what it can; messages come to rest.
    for (int round = 0; round < 8; ++round) {
      for (int m = 0; m < n; ++m) {
        if (group.lost(m)) continue;
        for (uint64_t k = 0; k < 8 * operations; ++k) act(m);
        group[m].Flush();
      }
      while (group.Step()) {
      }
    }
    for (uint64_t sequence = 0; sequence < operations; ++sequence) {
      SCOPED_TRACE("operation " + std::to_string(sequence));
      std::set<GateState> seen;
      for (int m = 0; m < n; ++m) {
        if (group.lost(m)) continue;
        close(m, sequence);
        ASSERT_TRUE(ended.contains({m, sequence})) << "member " << m << " waits for ever";
        const GateState state = ended[{m, sequence}];
        ASSERT_FALSE(group[m].Held(sequence));
        seen.insert(state);
        if (mode == Mode::kShared && state == GateState::kPassed) {
          ASSERT_TRUE(finished[static_cast<size_t>(m)][sequence] || group.has_result(m, sequence))
              << "member " << m << " has no result";
        }
        if (mode == Mode::kShared && finished[static_cast<size_t>(m)][sequence]) {
          // It has given its result to the caller: nobody may end with the old data.
          ASSERT_EQ(state, GateState::kPassed) << "member " << m;
        }
      }
      ASSERT_EQ(seen.size(), 1u) << "some have new data and some old";
    }
    // Whatever a survivor looks at, it names the same one.
    std::set<std::string> reasons;
    for (const auto& [m, reason] : failures) {
      if (!group.lost(m)) reasons.insert(reason);
    }
    ASSERT_LE(reasons.size(), 1u) << ::testing::PrintToString(reasons);
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, GateStorm, ::testing::Values(Mode::kShared, Mode::kAwaited),
                         [](const auto& param) {
                           return param.param == Mode::kShared ? "Shared" : "Awaited";
                         });

}  // namespace
}  // namespace syncopate::transport::net
