// A service in virtual time: what a request takes, and what becomes of it when hosts die, leave or come.
#include "sim/virtual_service.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/limits.h"
#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sim/sample_services_testing.h"
#include "sim/virtual_cluster.h"
#include "strategy/strategy.h"

namespace syncopate::sim {
namespace {

using strategy::Command;
using strategy::Event;
using strategy::WorkerInfo;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct AnswerSeen {
  int64_t ticket = 0;
  double at = 0;
  StrategyMessage message;
};
using AnswersSeen = std::vector<std::vector<AnswerSeen>>;  // by worker

// Asks "turns" after every backward pass, goes on at once, and notes when it was answered. Ends when all is
// answered.
class TurnAsker : public strategy::Strategy {
 public:
  explicit TurnAsker(std::vector<AnswerSeen>& answers) : answers_(answers) {}
  std::string name() const override { return "turn-asker"; }
  void Step(double now, const Event& event, std::vector<Command>& commands) override {
    if (const auto* e = std::get_if<strategy::IterationBegan>(&event)) iteration_ = e->iteration;
    if (const auto* e = std::get_if<strategy::ForwardNeeds>(&event)) {
      commands.push_back(strategy::Proceed{e->tensor});
    }
    if (std::holds_alternative<strategy::BackwardEnded>(event)) {
      ++open_;
      commands.push_back(
          strategy::AskService{"turns", iteration_, WantTurn{.iteration = iteration_}});
    }
    if (const auto* e = std::get_if<strategy::Answered>(&event)) {
      --open_;
      answers_.push_back({e->ticket, now, e->message});
    }
    draining_ |= std::holds_alternative<strategy::Drain>(event);
    if (draining_ && open_ == 0) {
      draining_ = false;
      commands.push_back(strategy::Drained{});
    }
  }

 private:
  std::vector<AnswerSeen>& answers_;
  int64_t iteration_ = 0;
  int open_ = 0;
  bool draining_ = false;
};

// Counts turns from 1; an answer has its number, and the incarnation of the host as its first sample.
class TurnCounter : public Service {
 public:
  TurnCounter(bool rebuilds, std::vector<std::string>& heard)
      : rebuilds_(rebuilds), heard_(heard) {}
  absl::string_view name() const override { return "turns"; }
  ServiceStep Step(const ServiceContext& context, const ServiceEvent& event) override {
    if (const auto* e = std::get_if<ServiceDeparted>(&event)) {
      heard_.push_back(absl::StrCat(e->in_good_order ? "left " : "lost ", e->rank));
    }
    if (const auto* e = std::get_if<ServiceJoined>(&event)) {
      heard_.push_back(absl::StrCat("joined ", e->rank));
    }
    const auto* const asked = std::get_if<ServiceAsked>(&event);
    if (asked == nullptr) return {};
    const TurnGiven given = {.turn = ++turns_, .first_sample = context.incarnation};
    return {.answers = {{.to = asked->from,
                         .ticket = asked->ticket,
                         .bytes = Encode(StrategyMessage(given))}},
            .reason = "a turn"};
  }
  std::string State() const override { return absl::StrCat(turns_); }
  absl::Status Load(absl::string_view state) override {
    return absl::SimpleAtoi(state, &turns_) ? absl::OkStatus() : absl::DataLossError("no count");
  }
  bool CanRebuild() const override { return rebuilds_; }
  absl::StatusOr<std::string> Rebuild(const ServiceContext&,
                                      const std::vector<ServiceReport>& reports) override {
    heard_.push_back(absl::StrCat("rebuilt from ", reports.size()));
    turns_ = 1'000'000;
    return "turns are counted anew";
  }

 private:
  const bool rebuilds_;
  std::vector<std::string>& heard_;
  uint64_t turns_ = 0;
};

class VirtualServiceTest : public ::testing::Test {
 protected:
  // Workers that compute for a second an iteration.
  VirtualOptions Options(int workers, int iterations) {
    VirtualOptions options;
    options.workers = workers;
    options.iterations = iterations;
    options.table = {
        .model = "one",
        .tensors = {{.name = "t", .elements = 1, .forward_seconds = 0.5, .backward_seconds = 0.5}}};
    options.make_service = [this](int rank) {
      made_.push_back(rank);
      return std::make_unique<TurnCounter>(rebuilds_, heard_[rank]);
    };
    return options;
  }

  absl::StatusOr<VirtualResult> Run(const VirtualOptions& options) {
    made_.clear();
    heard_.clear();
    answers_.assign(static_cast<size_t>(options.workers), {});
    return RunVirtually(options, [this](const WorkerInfo& info) {
      return std::make_unique<TurnAsker>(answers_[static_cast<size_t>(info.rank)]);
    });
  }

  // The turns that all were given together, each once, and the incarnations of the hosts that gave them.
  void ExpectTurnsOnce(std::set<uint64_t>& incarnations) const {
    std::set<uint64_t> turns;
    for (const std::vector<AnswerSeen>& answers : answers_) {
      std::set<int64_t> tickets;
      for (const AnswerSeen& answer : answers) {
        EXPECT_TRUE(tickets.insert(answer.ticket).second) << "answered twice";
        const auto* const given = std::get_if<TurnGiven>(&answer.message);
        ASSERT_NE(given, nullptr);
        EXPECT_TRUE(turns.insert(given->turn).second) << "turn " << given->turn << " again";
        incarnations.insert(given->first_sample);
      }
    }
  }

  bool rebuilds_ = false;
  std::vector<int> made_;                          // for which ranks a service was made
  std::map<int, std::vector<std::string>> heard_;  // by rank: who came and went, in its service
  AnswersSeen answers_;
};

// The host asks its standby only; the others send a request and get an answer as well.
TEST_F(VirtualServiceTest, ARequestTakesTheMessagesThatItTakesLive) {
  VirtualOptions options = Options(4, 1);
  options.message_delay = 0.125;
  ASSERT_TRUE(Run(options).ok());
  const double expected[] = {1.25, 1.5, 1.5, 1.5};
  for (size_t rank = 0; rank < 4; ++rank) {
    ASSERT_EQ(answers_[rank].size(), 1u);
    EXPECT_NEAR(answers_[rank][0].at, expected[rank], 1e-9) << rank;
  }
  // One to know its name, and those of the host and its standby.
  EXPECT_THAT(made_, ElementsAre(0, 0, 1));
  options = Options(1, 1);
  options.message_delay = 0.125;
  ASSERT_TRUE(Run(options).ok());
  EXPECT_NEAR(answers_[0][0].at, 1, 1e-9);
}

TEST_F(VirtualServiceTest, ARankThatTheUserNamesHosts) {
  VirtualOptions options = Options(4, 1);
  options.message_delay = 0.125;
  options.service_ranks = {3, 1};
  ASSERT_TRUE(Run(options).ok());
  EXPECT_NEAR(answers_[3][0].at, 1.25, 1e-9);
  EXPECT_NEAR(answers_[0][0].at, 1.5, 1e-9);
}

// Worker 1 asks at 1, 2 and 3 s; the service answers a millisecond later by its timer. The host dies before
// that, and worker 1 hears of it at 2.5 s: what is due is answered then, by the machine that stood by.
TEST_F(VirtualServiceTest, WhatADeadHostOwesIsAnsweredByItsStandby) {
  VirtualOptions options = Options(2, 3);
  options.make_service = [](int) { return std::make_unique<LateTurns>(); };
  options.departures = {{.rank = 0, .at = 1.0005, .detection = 1.4995}};
  const auto result = Run(options);
  ASSERT_TRUE(result.ok()) << result.status();
  const std::vector<AnswerSeen>& answers = answers_[1];
  ASSERT_EQ(answers.size(), 3u);
  const double expected[] = {2.5, 2.501, 3.001};
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(answers[i].ticket, static_cast<int64_t>(i));
    EXPECT_NEAR(answers[i].at, expected[i], 1e-6) << i;
  }
  // Only what worker 0 asked itself came in time.
  ASSERT_EQ(answers_[0].size(), 1u);
}

// Whatever the moments: each request of a survivor is answered once, and no turn is given twice.
TEST_F(VirtualServiceTest, EveryRequestIsAnsweredOnceWhoeverDiesOrLeaves) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Random random(seed);
    VirtualOptions options = Options(5, 12);
    options.seed = seed;
    options.jitter = 1;
    options.message_delay = 0.2 * random.Unit();
    options.departures = {{.rank = 0, .at = 1 + 6 * random.Unit(), .detection = random.Unit()},
                          {.rank = static_cast<int>(random.Between(1, 3)),
                           .at = 8 + 6 * random.Unit(),
                           .detection = random.Unit(),
                           .in_good_order = random.Below(2) == 0}};
    if (random.Below(2) == 0) options.departures[0].in_good_order = true;
    const auto result = Run(options);
    ASSERT_TRUE(result.ok()) << "seed " << seed << ": " << result.status();
    ASSERT_LT(result->iterations[0], 12) << "seed " << seed;  // it did go
    std::set<uint64_t> incarnations;
    ExpectTurnsOnce(incarnations);
    EXPECT_GT(*incarnations.rbegin(), 0u) << "seed " << seed;  // another worker has hosted
    for (size_t rank = 1; rank < 5; ++rank) {
      if (result->iterations[rank] == 12) {
        EXPECT_EQ(answers_[rank].size(), 12u) << "seed " << seed;
      }
    }
    EXPECT_THAT(heard_[1], ::testing::Contains(::testing::EndsWith(" 0"))) << "seed " << seed;
    const VirtualResult once = *result;
    const auto again = Run(options);
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(once.digest, again->digest) << "seed " << seed;
  }
}

TEST_F(VirtualServiceTest, HostAndStandbyLostTogetherEndItUnlessItCanRebuild) {
  VirtualOptions options = Options(4, 8);
  options.message_delay = 0.01;
  options.departures = {{.rank = 0, .at = 3.5, .detection = 0.2},
                        {.rank = 1, .at = 3.6, .detection = 0.2}};
  auto result = Run(options);
  ASSERT_TRUE(result.ok()) << result.status();
  for (const int rank : {2, 3}) {
    const size_t r = static_cast<size_t>(rank);
    EXPECT_THAT(std::string(result->status[r].message()), HasSubstr("service turns: "));
    EXPECT_THAT(std::string(result->status[r].message()), HasSubstr("lost together"));
    EXPECT_LT(result->iterations[r], 8);
    ASSERT_FALSE(answers_[r].empty());
  }
  rebuilds_ = true;
  result = Run(options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(heard_[2], ::testing::Contains("rebuilt from 2"));
  EXPECT_EQ(answers_[2].size(), 8u);
  EXPECT_EQ(answers_[3].size(), 8u);
  std::set<uint64_t> incarnations;
  ExpectTurnsOnce(incarnations);
  EXPECT_THAT(incarnations, ElementsAre(0, 2));
}

// Rank 0 is not there at first, so rank 1 hosts and rank 2 stands by. All machines hear of the same changes
// in the same order.
TEST_F(VirtualServiceTest, WhoJoinsIsKnownToItAndStandsBehindTheOthers) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    VirtualOptions options = Options(4, 12);
    options.seed = seed;
    options.jitter = 1;
    options.message_delay = 0.05;
    options.joins = {{.rank = 0, .at = 2.25, .detection = 0.5}};
    options.departures = {{.rank = 1, .at = 6.25, .detection = 0.3},
                          {.rank = 3, .at = 6.3, .detection = 0.1}};
    const auto result = Run(options);
    ASSERT_TRUE(result.ok()) << "seed " << seed << ": " << result.status();
    EXPECT_EQ(answers_[0].size(), 12u);  // asked before the others knew that it was there
    EXPECT_EQ(answers_[2].size(), 12u);
    std::set<uint64_t> incarnations;
    ExpectTurnsOnce(incarnations);
    EXPECT_THAT(incarnations, ElementsAre(0, 2));
    EXPECT_THAT(heard_[2], ElementsAre("joined 0", "lost 1", "lost 3"));
    EXPECT_THAT(heard_[1], ElementsAre("joined 0"));
  }
}

TEST_F(VirtualServiceTest, AServiceThatOnlyWatchesTheTimeDoesNotKeepARunAlive) {
  class Clockwork : public Service {
   public:
    absl::string_view name() const override { return "turns"; }
    ServiceStep Step(const ServiceContext& context, const ServiceEvent&) override {
      next_ns_ = context.now_ns + 1000;
      return {};
    }
    int64_t NextDeadlineNs() const override { return next_ns_; }
    std::string State() const override { return absl::StrCat(next_ns_); }
    absl::Status Load(absl::string_view state) override {
      return absl::SimpleAtoi(state, &next_ns_) ? absl::OkStatus() : absl::DataLossError("no time");
    }

   private:
    int64_t next_ns_ = 0;
  };
  VirtualOptions options = Options(1, 1);
  options.make_service = [](int) { return std::make_unique<Clockwork>(); };
  const auto result = Run(options);
  EXPECT_EQ(result.status().code(), absl::StatusCode::kAborted) << result.status();
  EXPECT_THAT(std::string(result.status().message()), HasSubstr("nothing can happen any more"));
}

TEST_F(VirtualServiceTest, WhatDoesNotFitIsRefused) {
  VirtualOptions options = Options(2, 1);
  options.service_ranks = {2};
  EXPECT_EQ(Run(options).status().code(), absl::StatusCode::kInvalidArgument);
  options = Options(limits::kWorkersMax + 1, 1);
  EXPECT_EQ(Run(options).status().code(), absl::StatusCode::kInvalidArgument);
  options = Options(2, 1);
  options.make_service = [](int) { return nullptr; };
  EXPECT_EQ(Run(options).status().code(), absl::StatusCode::kInvalidArgument);
  options = Options(2, 1);
  options.make_service = [](int) { return std::make_unique<LateGroups>(2); };
  const auto other = Run(options);
  EXPECT_EQ(other.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(other.status().message()), HasSubstr("turns"));
}

}  // namespace
}  // namespace syncopate::sim
