// The virtual cluster itself: what computes when, who comes and goes, what the service's host does, and
// that the network is the topology's.
#include "sim/virtual_cluster.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/tensor_layout.h"
#include "model/topology_makers.h"
#include "sim/random_jobs_testing.h"
#include "strategy/bsp.h"
#include "strategy/sample_strategies_testing.h"

namespace syncopate::sim {
namespace {

using strategy::Command;
using strategy::Event;
using strategy::Strategy;
using strategy::WorkerInfo;

TensorTable OneTensor(double forward_seconds, double backward_seconds, uint64_t elements = 1000) {
  return {.model = "one",
          .tensors = {{.name = "t",
                       .elements = elements,
                       .forward_seconds = forward_seconds,
                       .backward_seconds = backward_seconds}}};
}

StrategyFactory Bsp(const TensorTable& table) {
  const auto schedule = std::make_shared<Schedule>();
  for (int tensor = table.size() - 1; tensor >= 0; --tensor) {
    schedule->transfers.push_back({.first = tensor, .last = tensor});
  }
  return [schedule](const WorkerInfo& info) { return strategy::MakeBsp(info, schedule); };
}

TEST(VirtualClusterTest, ComputesByALineOfSamples) {
  VirtualOptions options;
  options.workers = 2;
  options.iterations = 3;
  options.table = OneTensor(1, 2);
  options.samples = {10, 20};
  options.compute = {{.alpha = 0.5, .beta = 0.1}};
  const auto result = RunVirtually(options, Bsp(options.table));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_NEAR(result->seconds, 3 * (0.5 + 0.1 * 20), 1e-9);  // the slower one's, transfers are free
  EXPECT_NEAR(result->waiting[0], 3 * 0.1 * 10, 1e-9);
  EXPECT_NEAR(result->waiting[1], 0, 1e-9);
  EXPECT_EQ(result->iterations, (std::vector<int64_t>{3, 3}));
}

TEST(VirtualClusterTest, SlownessChangesWithTime) {
  VirtualOptions options;
  options.iterations = 3;
  options.table = OneTensor(1, 1);
  options.slowness = {2};                        // forward and backward of iteration 0: 4 s
  options.slowdowns = {{0, 6, 5}, {0, 3.5, 1}};  // iteration 1: 2 s; iteration 2: 10 s
  const auto result = RunVirtually(options, Bsp(options.table));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->begun[0], (std::vector<double>{0, 4, 6}));
  EXPECT_NEAR(result->seconds, 16, 1e-9);
}

// Of eight workers three die and two leave; the others end, and no transfer is kept for those who went.
TEST(VirtualClusterTest, ManyMayGo) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Random random(seed);
    VirtualOptions options;
    options.workers = 8;
    options.iterations = 20;
    options.seed = seed;
    options.jitter = 1;
    options.table = RandomTable(random, 5);
    options.costs = RandomCosts(random);
    const auto make = [](const WorkerInfo& info) {
      return std::make_unique<strategy::GroupAverage>(info);
    };
    const auto whole = RunVirtually(options, make);
    ASSERT_TRUE(whole.ok()) << whole.status();
    for (int rank = 0; rank < 5; ++rank) {
      options.departures.push_back({.rank = rank,
                                    .at = random.Unit() * 0.8 * whole->seconds,
                                    .detection = 0.01 * random.Unit(),
                                    .in_good_order = rank >= 3});
    }
    const auto result = RunVirtually(options, make);
    ASSERT_TRUE(result.ok()) << "seed " << seed << ": " << result.status();
    for (int rank = 0; rank < 8; ++rank) {
      const size_t r = static_cast<size_t>(rank);
      EXPECT_EQ(result->status[r].ok(), rank >= 3) << rank;
      EXPECT_EQ(result->iterations[r] == 20, rank >= 5) << rank;
    }
  }
}

// Averages the parameters with everybody that it knows to be there, whenever it has worked alone.
class Joiner : public Strategy {
 public:
  explicit Joiner(std::vector<std::string>& heard) : heard_(heard) {}
  std::string name() const override { return "joiner"; }
  void Step(double, const Event& event, std::vector<Command>& commands) override {
    if (const auto* e = std::get_if<strategy::ForwardNeeds>(&event)) {
      commands.push_back(strategy::Proceed{e->tensor});
    }
    if (std::holds_alternative<strategy::BackwardEnded>(event)) {
      commands.push_back(strategy::ApplyUpdate{strategy::Update::kStepLocal, 0, 0});
    }
    if (const auto* e = std::get_if<strategy::WorkerJoined>(&event)) {
      heard_.push_back("joined " + std::to_string(e->rank));
    }
    if (const auto* e = std::get_if<strategy::WorkerLost>(&event)) {
      heard_.push_back("lost " + std::to_string(e->rank));
    }
    if (std::holds_alternative<strategy::Drain>(event)) commands.push_back(strategy::Drained{});
  }

 private:
  std::vector<std::string>& heard_;
};

TEST(VirtualClusterTest, WhoJoinsBeginsWithTheOthersParametersAndKnowsWhoIsGone) {
  VirtualOptions options;
  options.workers = 4;
  options.iterations = 10;
  options.table = OneTensor(0.5, 0.5);
  options.departures = {{.rank = 1, .at = 2.25, .detection = 0.1}};
  options.joins = {{.rank = 3, .at = 5.25, .detection = 0.1}, {.rank = 2, .at = 3.25}};
  std::vector<std::vector<std::string>> heard(4);
  const auto result = RunVirtually(options, [&](const WorkerInfo& info) {
    return std::make_unique<Joiner>(heard[static_cast<size_t>(info.rank)]);
  });
  ASSERT_TRUE(result.ok()) << result.status();
  using testing::ElementsAre;
  EXPECT_THAT(heard[0], ElementsAre("lost 1", "joined 2", "joined 3"));
  EXPECT_THAT(heard[1], ElementsAre());
  EXPECT_THAT(heard[2], ElementsAre("lost 1", "joined 3"));
  EXPECT_THAT(heard[3], ElementsAre("lost 1", "joined 2"));
  EXPECT_NEAR(result->seconds, 15.25, 1e-9);
  EXPECT_EQ(result->begun[3].front(), 5.25);
  // Rank 0 had applied five of its own gradients then.
  double expected = FirstParameter(0, 0);
  for (int i = 0; i < 5; ++i) expected -= 0.1 * GradientOf(0, 0, i, 0);
  for (int i = 0; i < 10; ++i) expected -= 0.1 * GradientOf(0, 3, i, 0);
  EXPECT_NEAR(result->parameters[3][0], expected, 1e-12);
}

TEST(VirtualClusterTest, TheFirstRankMayJoin) {
  VirtualOptions options;
  options.workers = 2;
  options.iterations = 5;
  options.table = OneTensor(0.5, 0.5);
  options.joins = {{.rank = 0, .at = 3.25}};
  std::vector<std::string> heard;
  const auto result =
      RunVirtually(options, [&](const WorkerInfo&) { return std::make_unique<Joiner>(heard); });
  ASSERT_TRUE(result.ok()) << result.status();
  double expected = FirstParameter(0, 0);
  for (int i = 0; i < 3; ++i) expected -= 0.1 * GradientOf(0, 1, i, 0);
  for (int i = 0; i < 5; ++i) expected -= 0.1 * GradientOf(0, 0, i, 0);
  EXPECT_NEAR(result->parameters[0][0], expected, 1e-12);
}

// Asks after every backward pass, and notes when it was answered.
class Asker : public Strategy {
 public:
  explicit Asker(std::vector<std::pair<int64_t, double>>& answers) : answers_(answers) {}
  std::string name() const override { return "asker"; }
  void Step(double now, const Event& event, std::vector<Command>& commands) override {
    if (const auto* e = std::get_if<strategy::IterationBegan>(&event)) iteration_ = e->iteration;
    if (const auto* e = std::get_if<strategy::ForwardNeeds>(&event)) {
      commands.push_back(strategy::Proceed{e->tensor});
    }
    if (std::holds_alternative<strategy::BackwardEnded>(event)) {
      ++open_;
      commands.push_back(
          strategy::AskService{"any", iteration_, WantTurn{.iteration = iteration_}});
    }
    if (const auto* e = std::get_if<strategy::Answered>(&event)) {
      --open_;
      answers_.emplace_back(e->ticket, now);
    }
    draining_ |= std::holds_alternative<strategy::Drain>(event);
    if (draining_ && open_ == 0) {
      draining_ = false;
      commands.push_back(strategy::Drained{});
    }
  }

 private:
  std::vector<std::pair<int64_t, double>>& answers_;
  int64_t iteration_ = 0;
  int open_ = 0;
  bool draining_ = false;
};

// Answers a quarter of a second after it was asked.
class Slowly : public Service {
 public:
  std::vector<Answer> Ask(double now, int rank, const strategy::AskService& ask) override {
    ++asked;
    return {{rank, now + 0.25, strategy::Answered{ask.service, ask.ticket, TurnGiven{}}}};
  }
  int asked = 0;
};

TEST(VirtualClusterTest, WhatAServiceMissedIsAnsweredOnceByTheNextHost) {
  VirtualOptions options;
  options.iterations = 5;
  options.table = OneTensor(0.5, 0.5);
  options.message_delay = 0.125;
  // Hides the answer to the first request (sent at 1.375), and all of the second and the third.
  options.service_outages = {{.at = 1.3, .detection = 1}, {.at = 2, .detection = 1.7}};
  Slowly service;
  options.service = &service;
  std::vector<std::pair<int64_t, double>> answers;
  const auto result =
      RunVirtually(options, [&](const WorkerInfo&) { return std::make_unique<Asker>(answers); });
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(service.asked, 5);
  std::sort(answers.begin(), answers.end());
  ASSERT_EQ(answers.size(), 5u);
  const double expected[] = {3.7 + 0.125, 3.7 + 0.25 + 0.125, 3.7 + 0.25 + 0.125, 4.5, 5.5};
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(answers[i].first, static_cast<int64_t>(i));
    EXPECT_NEAR(answers[i].second, expected[i], 1e-9) << i;
  }
}

// Two pairs in different racks average through one uplink at once, and take twice as long as one pair.
TEST(VirtualClusterTest, TransfersShareTheTopologysLinks) {
  class Pairs : public Strategy {
   public:
    Pairs(const WorkerInfo& info, int pairs) : info_(info), pairs_(pairs) {}
    std::string name() const override { return "pairs"; }
    void Step(double, const Event& event, std::vector<Command>& commands) override {
      const int first = info_.rank % 4;
      if (std::holds_alternative<strategy::ForwardNeeds>(event)) {
        commands.push_back(strategy::Proceed{0});
      }
      if (std::holds_alternative<strategy::BackwardEnded>(event)) out_ = first < pairs_;
      if (std::holds_alternative<strategy::BackwardEnded>(event) && out_) {
        commands.push_back(strategy::StartTransfer{.transfer = first,
                                                   .content = strategy::Content::kParameters,
                                                   .members = {first, first + 4}});
      }
      if (const auto* e = std::get_if<strategy::TransferDone>(&event)) {
        out_ = false;
        commands.push_back(strategy::ApplyUpdate{strategy::Update::kAdopt, 0, 0, e->transfer});
      }
      draining_ |= std::holds_alternative<strategy::Drain>(event);
      if (draining_ && !out_) {
        draining_ = false;
        commands.push_back(strategy::Drained{});
      }
    }

   private:
    const WorkerInfo info_;
    const int pairs_;
    bool out_ = false, draining_ = false;
  };
  VirtualOptions options;
  options.workers = 8;
  options.table = OneTensor(0.5, 0.5, 10'000'000);
  options.topology = std::make_shared<const Topology>(TwoRackTopology(4, 1e9, 1e8, 50e-6));
  options.placement = *PlaceInOrder(*options.topology, 8);
  const auto run = [&](int pairs) {
    const auto result = RunVirtually(
        options, [&](const WorkerInfo& info) { return std::make_unique<Pairs>(info, pairs); });
    EXPECT_TRUE(result.ok()) << result.status();
    double bytes = 0;
    for (const double each : result->link_bytes) bytes += each;
    // Both ways of a pair: two NICs and the two halves of the uplink.
    EXPECT_NEAR(bytes, pairs * 4e7 * 8, pairs * 4e7 * 2.1);
    return result->seconds - 1;
  };
  const double one = run(1);
  EXPECT_NEAR(one, 0.4, 0.04);
  EXPECT_NEAR(run(2), 2 * one, 0.02 * one);
  EXPECT_NEAR(run(4), 4 * one, 0.04 * one);
  // Only half of the workers' transfers crosses the network if one of a pair dies in its midst.
  options.departures = {{.rank = 5, .at = 1.2, .detection = 0.1}};
  const auto result = RunVirtually(
      options, [&](const WorkerInfo& info) { return std::make_unique<Pairs>(info, 2); });
  EXPECT_EQ(result.status().code(), absl::StatusCode::kAborted);  // worker 1 does not listen
}

TEST(VirtualClusterTest, RunsOnATopologyPassTheSuiteOfCosts) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    Random random(seed);
    VirtualOptions options;
    options.workers = static_cast<int>(random.Between(2, 8));
    options.iterations = 4;
    options.seed = seed;
    options.jitter = 1;
    options.table = RandomTable(random, 4);
    options.topology = std::make_shared<const Topology>(RandomTopology(options.workers, seed));
    options.placement = *PlaceInOrder(*options.topology, options.workers);
    const auto once = RunVirtually(options, Bsp(options.table));
    const auto again = RunVirtually(options, Bsp(options.table));
    ASSERT_TRUE(once.ok() && again.ok()) << "seed " << seed << ": " << once.status();
    EXPECT_EQ(once->digest, again->digest);
    for (const std::vector<double>& parameters : once->parameters) {
      EXPECT_EQ(parameters, once->parameters[0]);
    }
    options.seed += 1000;
    const auto other = RunVirtually(options, Bsp(options.table));
    ASSERT_TRUE(other.ok()) << other.status();
    EXPECT_FALSE(other->digest == once->digest);
    // Groups that change, with losses.
    options.departures = {{.rank = 0, .at = 0.3 * once->seconds, .detection = 0.001}};
    const auto groups = RunVirtually(options, [](const WorkerInfo& info) {
      return std::make_unique<strategy::GroupAverage>(info);
    });
    ASSERT_TRUE(groups.ok()) << "seed " << seed << ": " << groups.status();
  }
}

// However long a run is, what is remembered is what is under way; exchanges and pushes as well.
TEST(VirtualClusterTest, FinishedTransfersAreForgotten) {
  Random random(2);
  VirtualOptions options;
  options.workers = 8;
  options.table = RandomTable(random, 6);
  options.costs = RandomCosts(random);
  options.jitter = 0.1;
  Slowly service;
  options.service = &service;
  const uint64_t bytes = TensorLayout(options.table).bytes();
  const std::vector<StrategyFactory> factories = {
      Bsp(options.table),
      [](const WorkerInfo& info) { return std::make_unique<strategy::GroupAverage>(info); },
      [](const WorkerInfo& info) { return std::make_unique<strategy::ShuffledGroups>(info, 3, 1); },
      [](const WorkerInfo& info) { return std::make_unique<strategy::PermittedServer>(info); },
      [=](const WorkerInfo& info) {
        return std::make_unique<strategy::RingExchange>(info, bytes);
      }};
  for (size_t i = 0; i < factories.size(); ++i) {
    options.iterations = 100;
    const auto result = RunVirtually(options, factories[i]);
    ASSERT_TRUE(result.ok()) << i << ": " << result.status();
    EXPECT_GT(result->transfers_max, 0u);
    EXPECT_LE(result->transfers_max, 8u * 6) << i;  // of hundreds and thousands
  }
}

// The groups of a round are a partition of all ranks, and other rounds have others.
TEST(ShuffledGroupsTest, EveryRankIsInOneGroupOfEachRound) {
  for (const int size : {1, 4, 7, 30, 1024}) {
    for (int64_t round = 0; round < 5; ++round) {
      std::vector<int> met(static_cast<size_t>(size), 0);
      for (int rank = 0; rank < size; ++rank) {
        const std::vector<int> group = strategy::ShuffledGroupOf(rank, size, 4, 9, round);
        EXPECT_LE(group.size(), 4u);
        EXPECT_TRUE(std::find(group.begin(), group.end(), rank) != group.end());
        for (const int member : group) {
          ++met[static_cast<size_t>(member)];
          EXPECT_EQ(group, strategy::ShuffledGroupOf(member, size, 4, 9, round));
        }
        if (group.front() != rank) {
          for (const int member : group) --met[static_cast<size_t>(member)];
        }
      }
      EXPECT_EQ(met, std::vector<int>(static_cast<size_t>(size), 1)) << size << " " << round;
    }
  }
  EXPECT_NE(strategy::ShuffledGroupOf(0, 1024, 4, 9, 0),
            strategy::ShuffledGroupOf(0, 1024, 4, 9, 1));
}

TEST(VirtualClusterTest, OptionsThatDoNotFitAreRefused) {
  VirtualOptions good;
  good.workers = 2;
  good.table = OneTensor(1, 1);
  const auto refused = [&](const std::function<void(VirtualOptions&)>& change) {
    VirtualOptions options = good;
    change(options);
    return RunVirtually(options, Bsp(options.table)).status().code() ==
           absl::StatusCode::kInvalidArgument;
  };
  EXPECT_FALSE(refused([](VirtualOptions&) {}));
  EXPECT_TRUE(refused([](VirtualOptions& o) { o.departures = {{.rank = 2}}; }));
  EXPECT_TRUE(refused([](VirtualOptions& o) { o.joins = {{.rank = 0}, {.rank = 1}}; }));
  EXPECT_TRUE(refused([](VirtualOptions& o) { o.joins = {{.rank = 1}, {.rank = 1}}; }));
  EXPECT_TRUE(refused([](VirtualOptions& o) { o.slowdowns = {{-1, 0, 2}}; }));
  EXPECT_TRUE(refused([](VirtualOptions& o) { o.first_parameters = {1, 2}; }));
  EXPECT_TRUE(refused([](VirtualOptions& o) {
    o.topology = std::make_shared<const Topology>(StarTopology(2, 1e9, 1e-6));
  }));
}

}  // namespace
}  // namespace syncopate::sim
