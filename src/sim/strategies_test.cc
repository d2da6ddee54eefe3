// The strategies in virtual time, and machines that are none of ours but need what later ones will
// (strategy/sample_strategies_testing.h).
#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/tensor_layout.h"
#include "schedule/planners.h"
#include "schedule/timeline.h"
#include "sim/sample_services_testing.h"
#include "sim/strategy_conformance.h"
#include "strategy/bsp.h"
#include "strategy/sample_strategies_testing.h"

namespace syncopate::sim {
namespace {

using strategy::Command;
using strategy::Event;
using strategy::Strategy;
using strategy::WorkerInfo;

StrategyCase BspCase(const std::string& planner, strategy::BspOptions options = {}) {
  return {.name = "bsp-" + planner + (options.update_together ? "-together" : ""),
          .make =
              [=](const TensorTable& table, const cost::CommunicationCosts& costs) {
                const absl::StatusOr<Schedule> schedule = schedule::MakeSchedule(
                    planner, table, costs, {.bucket_bytes = 200'000, .first_bucket_bytes = 50'000});
                EXPECT_TRUE(schedule.ok()) << schedule.status();
                return [=](const WorkerInfo& info) {
                  return strategy::MakeBsp(info, std::make_shared<Schedule>(*schedule), options);
                };
              },
          .equals_one_worker = true};
}

INSTANTIATE_TEST_SUITE_P(Bsp, StrategyConformance,
                         ::testing::Values(BspCase("none"), BspCase("wfbp"), BspCase("mg-wfbp"),
                                           BspCase("bucket"), BspCase("asc-wfbp"),
                                           BspCase("search"),
                                           BspCase("search", {.update_together = true})),
                         CaseName);

template <typename T>
StrategyFactory MakerOf(const TensorTable&, const cost::CommunicationCosts&) {
  return [](const WorkerInfo& worker) { return std::make_unique<T>(worker); };
}

StrategyFactory MakeRing(const TensorTable& table, const cost::CommunicationCosts&) {
  return [bytes = TensorLayout(table).bytes()](const WorkerInfo& worker) {
    return std::make_unique<strategy::RingExchange>(worker, bytes);
  };
}

INSTANTIATE_TEST_SUITE_P(
    Samples, StrategyConformance,
    ::testing::Values(
        StrategyCase{.name = "group-average",
                     .make = MakerOf<strategy::GroupAverage>,
                     .can_lose = StrategyCase::Loss::kAnybody},
        StrategyCase{.name = "asked-groups",
                     .make = MakerOf<strategy::AskedGroups>,
                     .service = [](int workers) { return std::make_unique<LateGroups>(workers); },
                     .can_lose = StrategyCase::Loss::kAnybody},
        StrategyCase{.name = "permitted-server",
                     .make = MakerOf<strategy::PermittedServer>,
                     .service = [](int) { return std::make_unique<LateTurns>(); },
                     .can_lose = StrategyCase::Loss::kSome},
        StrategyCase{.name = "ring-exchange", .make = MakeRing}),
    CaseName);

// Equal workers without jitter take what the timeline model says.
TEST(BspTest, TakesTheTimeOfTheTimelineModel) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    Random random(seed);
    VirtualOptions options;
    options.workers = 3;
    options.iterations = 4;
    options.table = RandomTable(random, static_cast<int>(random.Between(1, 30)));
    options.costs = RandomCosts(random);
    for (const schedule::SchedulePlanner& planner : schedule::SchedulePlanners()) {
      const auto schedule = std::make_shared<Schedule>(
          *schedule::MakeSchedule(planner.name, options.table, options.costs));
      const absl::StatusOr<VirtualResult> result = RunVirtually(
          options, [&](const WorkerInfo& info) { return strategy::MakeBsp(info, schedule); });
      ASSERT_TRUE(result.ok()) << result.status();
      const absl::StatusOr<double> predicted = schedule::PredictIteration(
          options.table, options.costs, *schedule, {.overlap_forward = true});
      ASSERT_TRUE(predicted.ok()) << predicted.status();
      const auto& begun = result->begun[0];
      EXPECT_NEAR(begun[3] - begun[2], *predicted, 1e-6 * *predicted)
          << planner.name << ", seed " << seed;
    }
  }
}

TEST(BspTest, ChangesItsScheduleAtTheSameIterationEverywhere) {
  Random random(5);
  VirtualOptions options;
  options.workers = 4;
  options.iterations = 6;
  options.jitter = 2;
  options.table = RandomTable(random, 9);
  options.costs = RandomCosts(random);
  const auto make = [&](const char* planner) {
    return std::make_shared<Schedule>(
        *schedule::MakeSchedule(planner, options.table, options.costs));
  };
  options.values = {{make("wfbp"), 2}, {make("none"), 4}};
  const absl::StatusOr<VirtualResult> result = RunVirtually(
      options, [&](const WorkerInfo& info) { return strategy::MakeBsp(info, make("none")); });
  ASSERT_TRUE(result.ok()) << result.status();
  for (const auto& told : result->told) {
    int64_t iteration = 0;
    std::map<int64_t, int> starts;
    for (const auto& step : told) {
      if (const auto* e = std::get_if<strategy::IterationBegan>(&step.event)) {
        iteration = e->iteration;
      }
      for (const Command& command : step.commands) {
        starts[iteration] += std::holds_alternative<strategy::StartTransfer>(command);
      }
    }
    // With one transfer beside none, the last ones of an iteration start within the next: count all
    // that were started by then.
    int total = 0;
    for (const auto& [at, count] : starts) total += count;
    EXPECT_EQ(total, 1 + 1 + 9 + 9 + 1 + 1);
  }
}

// Doubly stochastic exchanges keep the mean of all workers' parameters, and averages keep that of
// their group: what all workers have in the mean is what one has that steps with the mean gradient.
TEST(SampleStrategiesTest, AveragesAndExchangesKeepTheMeanOfAllParameters) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Random random(seed);
    VirtualOptions options;
    options.workers = static_cast<int>(random.Between(2, 8));
    options.iterations = 5;
    options.seed = seed;
    options.jitter = 2;
    options.table = RandomTable(random, 7);
    options.costs = RandomCosts(random);
    options.make_service = [workers = options.workers](int) {
      return std::make_unique<LateGroups>(workers);
    };
    for (const auto& [factory, rate] :
         {std::pair{MakerOf<strategy::GroupAverage>(options.table, options.costs), 1.0},
          {MakerOf<strategy::AskedGroups>(options.table, options.costs), 1.0},
          {MakeRing(options.table, options.costs), 0.5}}) {
      const absl::StatusOr<VirtualResult> result = RunVirtually(options, factory);
      ASSERT_TRUE(result.ok()) << result.status();
      for (int tensor = 0; tensor < options.table.size(); ++tensor) {
        double mean = 0, expected = FirstParameter(seed, tensor);
        for (int rank = 0; rank < options.workers; ++rank) {
          mean += result->parameters[static_cast<size_t>(rank)][static_cast<size_t>(tensor)] /
                  options.workers;
          for (int64_t i = 0; i < options.iterations; ++i) {
            expected -=
                rate * options.learning_rate * GradientOf(seed, rank, i, tensor) / options.workers;
          }
        }
        EXPECT_NEAR(mean, expected, 1e-12) << "seed " << seed << ", tensor " << tensor;
      }
    }
  }
}

TEST(SampleStrategiesTest, ProgressMessagesAndDistancesReachTheirStrategies) {
  Random random(3);
  VirtualOptions options;
  options.workers = 4;
  options.iterations = 4;
  options.samples = {8, 8, 8, 8};
  options.table = RandomTable(random, 3);
  options.costs = RandomCosts(random);
  options.make_service = [](int) { return std::make_unique<LateGroups>(4); };
  const absl::StatusOr<VirtualResult> result =
      RunVirtually(options, MakerOf<strategy::AskedGroups>(options.table, options.costs));
  ASSERT_TRUE(result.ok()) << result.status();
  uint64_t most = 0;
  for (int rank = 0; rank < options.workers; ++rank) {
    most = std::max(most, result->total_samples[static_cast<size_t>(rank)]);
    double measured = 0, told = 0, heard = 0;
    for (const strategy::Decision& step : result->told[static_cast<size_t>(rank)]) {
      if (const auto* e = std::get_if<strategy::Updated>(&step.event))
        measured += e->squared_distance;
      if (const auto* e = std::get_if<strategy::MessageArrived>(&step.event)) {
        EXPECT_EQ(e->from, (rank + 3) % 4);
        heard += std::get<Distance>(e->message).squared;
      }
      for (const Command& command : step.commands) {
        if (const auto* c = std::get_if<strategy::SendMessage>(&command)) {
          told += std::get<Distance>(c->message).squared;
        }
      }
    }
    EXPECT_GT(measured, 0);
    EXPECT_EQ(told, measured);
    EXPECT_GT(heard, 0);
  }
  EXPECT_EQ(most, 4u * 4 * 8);
}

TEST(VirtualClusterTest, CommandsThatMakeNoSenseAreFaults) {
  class OneCommand : public Strategy {
   public:
    explicit OneCommand(Command command) : command_(std::move(command)) {}
    std::string name() const override { return "one-command"; }
    void Step(double, const Event& event, std::vector<Command>& commands) override {
      if (std::holds_alternative<strategy::IterationBegan>(event)) commands.push_back(command_);
    }

   private:
    const Command command_;
  };
  Random random(1);
  VirtualOptions options;
  options.workers = 2;
  options.table = RandomTable(random, 2);
  using strategy::StartTransfer;
  for (const Command& command : std::vector<Command>{
           StartTransfer{.first = 1, .last = 2}, StartTransfer{.begin = 2, .end = 8},
           StartTransfer{.end = uint64_t{1} << 40}, StartTransfer{.members = {5}},
           StartTransfer{.movement = strategy::Movement::kPush, .target = 2},
           StartTransfer{.movement = strategy::Movement::kExchange, .to = {1}, .from = {{7, 1}}},
           strategy::ApplyUpdate{.transfer = 3}, strategy::AskService{"none", 1, WantGroup{}},
           strategy::SendMessage{2, Distance{}}, strategy::SendMessage{1, Distance{.squared = -1}},
           strategy::Drained{}}) {
    const absl::StatusOr<VirtualResult> result =
        RunVirtually(options, [&](const WorkerInfo& info) -> std::unique_ptr<Strategy> {
          return std::make_unique<OneCommand>(info.rank == 0 ? command
                                                             : Command(strategy::Proceed{0}));
        });
    EXPECT_EQ(result.status().code(), absl::StatusCode::kFailedPrecondition)
        << ToText(command) << ": " << result.status();
  }
}

// As a running job refuses it.
TEST(VirtualClusterTest, ATicketThatDoesNotGrowIsAFault) {
  class AsksTwice : public Strategy {
   public:
    std::string name() const override { return "asks-twice"; }
    void Step(double, const Event& event, std::vector<Command>& commands) override {
      if (!std::holds_alternative<strategy::IterationBegan>(event)) return;
      for (const int64_t ticket : {3, 3}) {
        commands.push_back(
            strategy::AskService{strategy::PermittedServer::kService, ticket, WantTurn{}});
      }
    }
  };
  Random random(1);
  VirtualOptions options;
  options.table = RandomTable(random, 1);
  options.make_service = [](int) { return std::make_unique<LateTurns>(); };
  const absl::StatusOr<VirtualResult> result =
      RunVirtually(options, [](const WorkerInfo&) { return std::make_unique<AsksTwice>(); });
  EXPECT_EQ(result.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(result.status().message()), ::testing::HasSubstr("ticket 3 was before"));
}

// A strategy that forgets somebody is found out.
TEST(VirtualClusterTest, ADeadlockNamesWhoWaitsForWhat) {
  class Forgetful : public Strategy {
   public:
    std::string name() const override { return "forgetful"; }
    void Step(double, const Event& event, std::vector<Command>& commands) override {
      if (const auto* e = std::get_if<strategy::ForwardNeeds>(&event); e && e->tensor == 0) {
        commands.push_back(strategy::Proceed{0});
      }
    }
  };
  Random random(1);
  VirtualOptions options;
  options.table = RandomTable(random, 2);
  const absl::StatusOr<VirtualResult> result =
      RunVirtually(options, [](const WorkerInfo&) { return std::make_unique<Forgetful>(); });
  EXPECT_EQ(result.status().code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(result.status().message()),
              ::testing::HasSubstr("worker 0 waits for tensor 1 in iteration 0"));
}

}  // namespace
}  // namespace syncopate::sim
