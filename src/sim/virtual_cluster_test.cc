// The virtual cluster itself: what computes when, who comes and goes, and that the network is the topology's.
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
#include "sim/sample_services_testing.h"
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

TEST(VirtualClusterTest, AveragesOfAllTrainingRanksAreWithoutServers) {
  class Still : public Strategy {
   public:
    std::string name() const override { return "still"; }
    void Step(double, const Event& event, std::vector<Command>& commands) override {
      if (const auto* e = std::get_if<strategy::ForwardNeeds>(&event)) {
        commands.emplace_back(strategy::Proceed{e->tensor});
      }
      if (std::holds_alternative<strategy::Drain>(event)) {
        commands.emplace_back(strategy::Drained{});
      }
    }
  };
  VirtualOptions options;
  options.workers = 3;
  options.iterations = 2;
  options.seed = 5;
  options.table = OneTensor(1, 1);
  options.servers = {1};
  const StrategyFactory bsp = Bsp(options.table);
  const auto result =
      RunVirtually(options, [&](const WorkerInfo& info) -> std::unique_ptr<Strategy> {
        return info.rank == 1 ? std::make_unique<Still>() : bsp(info);
      });
  ASSERT_TRUE(result.ok()) << result.status();
  double expected = FirstParameter(5, 0);
  EXPECT_EQ(result->parameters[1][0], expected);
  for (int64_t i = 0; i < options.iterations; ++i) {
    expected -= options.learning_rate * (GradientOf(5, 0, i, 0) + GradientOf(5, 2, i, 0)) / 2;
  }
  EXPECT_NEAR(result->parameters[0][0], expected, 1e-9);
  EXPECT_NEAR(result->parameters[2][0], expected, 1e-9);
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
  using ::testing::ElementsAre;
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

// One that serves computes nothing and is waited for by nobody. It holds what it was pushed.
TEST(VirtualClusterTest, AServerHoldsTheStepsOfAll) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Random random(seed);
    VirtualOptions options;
    options.workers = 4;
    options.iterations = 5;
    options.seed = seed;
    options.table = RandomTable(random, 3);
    options.costs = RandomCosts(random);
    options.jitter = seed % 2 == 0 ? 0 : 1;  // without it all push at the same moments
    options.make_service = [](int) { return std::make_unique<LateTurns>(); };
    for (const bool serves : {false, true}) {
      options.roles.assign(4, strategy::Role::kTrains);
      if (serves) options.roles[0] = strategy::Role::kServes;
      const auto result = RunVirtually(options, [](const WorkerInfo& info) {
        return std::make_unique<strategy::PermittedServer>(info);
      });
      ASSERT_TRUE(result.ok()) << "seed " << seed << ": " << result.status();
      EXPECT_EQ(result->iterations, (std::vector<int64_t>{serves ? 0 : 5, 5, 5, 5}));
      ASSERT_EQ(result->held[0].size(), 3u);
      EXPECT_TRUE(result->held[1].empty());
      EXPECT_EQ(result->begun[0].empty(), serves);
      for (int tensor = 0; tensor < 3; ++tensor) {
        double expected = FirstParameter(seed, tensor);
        for (int rank = serves ? 1 : 0; rank < 4; ++rank) {
          for (int i = 0; i < 5; ++i) {
            expected -= options.learning_rate * GradientOf(seed, rank, i, tensor);
          }
        }
        EXPECT_NEAR(result->held[0][static_cast<size_t>(tensor)], expected, 1e-9)
            << "seed " << seed << ", serves " << serves;
      }
    }
    // It is no member of an average of all.
    options.roles[0] = strategy::Role::kServes;
    const auto all = RunVirtually(options, Bsp(options.table));
    ASSERT_TRUE(all.ok()) << all.status();
    EXPECT_EQ(all->parameters[1], all->parameters[3]);
    EXPECT_EQ(all->iterations[1], 5);
  }
}

// However long a run is, what is remembered is what is under way; exchanges and pushes as well.
// Workers drift apart, so some begin a round long before others: what they name goes by the round.
TEST(VirtualClusterTest, GroupsOfARoundNameTheVersionOfTheNetworkThatCountsForIt) {
  Topology topology;
  topology.version = 7;
  VirtualOptions options;
  options.workers = 5;
  options.iterations = 8;
  options.table = OneTensor(1, 2);
  options.jitter = 0.5;
  options.values = {{std::make_shared<const Topology>(topology), 3}};
  options.keep_log = true;
  const auto result = RunVirtually(options, [](const WorkerInfo& info) {
    return std::make_unique<strategy::GroupAverage>(info);
  });
  ASSERT_TRUE(result.ok()) << result.status();
  int named = 0;
  for (const std::vector<strategy::Decision>& told : result->told) {
    for (const strategy::Decision& step : told) {
      for (const Command& command : step.commands) {
        const auto* start = std::get_if<strategy::StartTransfer>(&command);
        if (start == nullptr) continue;
        EXPECT_EQ(start->version, start->key.number >= 3 ? 7u : 0u);
        ++named;
      }
    }
  }
  EXPECT_GT(named, 5 * 5);
}

// As between real workers, whose programs would not be the same.
TEST(VirtualClusterTest, MembersThatNameDifferentVersionsAreAFault) {
  class Names : public Strategy {
   public:
    explicit Names(uint64_t version) : version_(version) {}
    std::string name() const override { return "names"; }
    void Step(double, const Event& event, std::vector<Command>& commands) override {
      if (!std::holds_alternative<strategy::IterationBegan>(event)) return;
      commands.push_back(strategy::StartTransfer{.members = {0, 1}, .version = version_});
    }

   private:
    const uint64_t version_;
  };
  VirtualOptions options;
  options.workers = 2;
  options.table = OneTensor(1, 2);
  const absl::StatusOr<VirtualResult> result = RunVirtually(options, [](const WorkerInfo& info) {
    return std::make_unique<Names>(static_cast<uint64_t>(info.rank));
  });
  EXPECT_EQ(result.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(result.status().message()),
              ::testing::HasSubstr("another member started something else with this id"));
}

TEST(VirtualClusterTest, FinishedTransfersAreForgotten) {
  Random random(2);
  VirtualOptions options;
  options.workers = 8;
  options.table = RandomTable(random, 6);
  options.costs = RandomCosts(random);
  options.jitter = 0.1;
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
    options.make_service = [](int) { return std::make_unique<LateTurns>(); };
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

// As live (tests/transfer_times_test.cc): the wait for a member that is late is no part of a transfer.
TEST(VirtualClusterTest, TheFirstByteIsNotBeforeTheLastMember) {
  // What workers are told, by rank.
  struct Told {
    std::vector<double> begun, first, last;
  };
  class OneTransfer : public Strategy {
   public:
    OneTransfer(const WorkerInfo& info, strategy::Movement movement, Told& told)
        : info_(info), movement_(movement), told_(told) {}
    std::string name() const override { return "one-transfer"; }
    void Step(double now, const Event& event, std::vector<Command>& commands) override {
      const size_t rank = static_cast<size_t>(info_.rank);
      if (std::holds_alternative<strategy::ForwardNeeds>(event)) {
        commands.push_back(strategy::Proceed{0});
      }
      if (std::holds_alternative<strategy::BackwardEnded>(event)) {
        told_.begun[rank] = now;
        strategy::StartTransfer start{
            .transfer = 1, .movement = movement_, .content = strategy::Content::kParameters};
        if (movement_ == strategy::Movement::kExchange) {
          start.to = {1 - info_.rank};
          start.from = {{.rank = 1 - info_.rank, .weight = 0.5}};
        }
        commands.push_back(start);
      }
      if (const auto* e = std::get_if<strategy::TransferDone>(&event)) {
        told_.first[rank] = e->first_byte;
        told_.last[rank] = e->last_byte;
        commands.push_back(strategy::ApplyUpdate{strategy::Update::kAdopt, 0, 0, e->transfer});
        done_ = true;
      }
      draining_ |= std::holds_alternative<strategy::Drain>(event);
      if (draining_ && done_) {
        draining_ = false;
        commands.push_back(strategy::Drained{});
      }
    }

   private:
    const WorkerInfo info_;
    const strategy::Movement movement_;
    Told& told_;
    bool done_ = false, draining_ = false;
  };
  for (const auto movement : {strategy::Movement::kAverage, strategy::Movement::kExchange}) {
    VirtualOptions options;
    options.workers = 2;
    options.table = OneTensor(1, 1);
    options.slowness = {1, 3};
    options.costs = {.a = 0.25, .b = 1e-4, .gamma = {1, 1}, .source = ""};  // two exchanges at once
    Told told{.begun = {0, 0}, .first = {0, 0}, .last = {0, 0}};
    const auto result = RunVirtually(options, [&](const WorkerInfo& info) {
      return std::make_unique<OneTransfer>(info, movement, told);
    });
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(told.begun, (std::vector<double>{2, 6}));
    for (const size_t rank : {0u, 1u}) {
      EXPECT_NEAR(told.first[rank], 6 + 0.25, 1e-9);  // the start-up follows when both are there
      EXPECT_NEAR(told.last[rank] - told.first[rank], 4000 * 1e-4, 1e-9);
    }
  }
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
  const auto serves = strategy::Role::kServes, trains = strategy::Role::kTrains;
  EXPECT_FALSE(refused([&](VirtualOptions& o) { o.roles = {serves, trains}; }));
  EXPECT_TRUE(refused([&](VirtualOptions& o) { o.roles = {serves}; }));
  EXPECT_TRUE(refused([&](VirtualOptions& o) { o.roles = {serves, serves}; }));
  EXPECT_TRUE(refused([&](VirtualOptions& o) {
    o.roles = {serves, trains};
    o.departures = {{.rank = 0, .at = 1, .in_good_order = true}};
  }));
  EXPECT_TRUE(refused([](VirtualOptions& o) { o.slowdowns = {{-1, 0, 2}}; }));
  EXPECT_TRUE(refused([](VirtualOptions& o) { o.first_parameters = {1, 2}; }));
  EXPECT_TRUE(refused([](VirtualOptions& o) {
    o.topology = std::make_shared<const Topology>(StarTopology(2, 1e9, 1e-6));
  }));
}

}  // namespace
}  // namespace syncopate::sim
