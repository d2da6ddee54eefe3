#include "sync/replay.h"

#include <algorithm>
#include <map>

#include "base/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/strategy_message.h"
#include "observe/breakdown.h"
#include "schedule/planners.h"
#include "strategy/registry.h"
#include "strategy/sample_strategies_testing.h"
#include "worker/worker_testing.h"

namespace syncopate::sync {
namespace {

TensorTable ReplayTable(double forward, double backward) {
  TensorTable table{.model = "test", .tensors = {}};
  for (int i = 0; i < 10; ++i) {
    table.tensors.push_back({.name = "t" + std::to_string(i),
                             .elements = static_cast<uint64_t>(100 * (i + 1)),
                             .type = DataType::kFloat32,
                             .forward_seconds = forward,
                             .backward_seconds = backward});
  }
  return table;
}

cost::CommunicationCosts Costs() { return {.a = 1e-4, .b = 1e-9, .gamma = {1, 1.5}, .source = ""}; }

TEST(PlayedTimeTest, ShortWorksTakeWhatTheyShouldInAll) {
  const int64_t begin_ns = MonotonicClock().NowNs();
  PlayedTime time(begin_ns);
  for (int i = 0; i < 3000; ++i) time.Work(1e-5);
  EXPECT_NEAR(static_cast<double>(time.at_ns() - begin_ns), 30e6, 10);
  // Never early by more than what is not worth a sleep; how late is the machine's business.
  EXPECT_GE(MonotonicClock().NowNs() - begin_ns, 30'000'000 - 50'000);
}

TEST(PlayedTimeTest, WorkBeginsWhenWhatHeldItIsOver) {
  PlayedTime time(1000);
  time.Held(500);
  EXPECT_EQ(time.at_ns(), 1000);
  time.Held(3000);
  EXPECT_EQ(time.at_ns(), 3000);
}

class ReplayTest : public ::testing::TestWithParam<std::tuple<std::string, bool>> {};

TEST_P(ReplayTest, TakesAtLeastItsComputingAndMovesTheRightMeans) {
  const auto& [planner, overlap] = GetParam();
  const TensorTable table = ReplayTable(2e-4, 4e-4);
  const Schedule schedule = *schedule::MakeSchedule(planner, table, Costs());
  worker::RunWorkers(3, [&, overlap = overlap](Worker& worker) {
    observe::Recorder recorder(MonotonicClock(), worker.rank(), "here");
    const auto replay =
        Replay::Make(worker, table, schedule, {.overlap_forward = overlap, .recorder = &recorder});
    ASSERT_TRUE(replay.ok()) << replay.status();
    const auto seconds = (*replay)->Run(5);
    ASSERT_TRUE(seconds.ok()) << seconds.status();
    ASSERT_EQ(seconds->size(), 5u);
    EXPECT_EQ((*replay)->iteration(), 4);
    double all = 0;
    for (const double one : *seconds) all += one;
    EXPECT_GE(all, 5 * 10 * 6e-4 - 1e-3);
    const auto costs = observe::BreakDown({recorder.Trace()});
    ASSERT_TRUE(costs.ok()) << costs.status();
    EXPECT_EQ(costs->workers[0].iterations, 5);
    EXPECT_EQ(costs->bytes, 5 * table.bytes());
  });
}

INSTANTIATE_TEST_SUITE_P(All, ReplayTest,
                         ::testing::Combine(::testing::Values("none", "wfbp", "search"),
                                            ::testing::Bool()),
                         [](const auto& test) {
                           return std::get<0>(test.param) +
                                  (std::get<1>(test.param) ? "Overlapped" : "Barrier");
                         });

TEST(ReplaySchedulesTest, ChangeBetweenRuns) {
  const TensorTable table = ReplayTable(1e-5, 1e-5);
  worker::RunWorkers(2, [&](Worker& worker) {
    observe::Recorder recorder(MonotonicClock(), worker.rank(), "here");
    const auto replay = Replay::Make(worker, table, *schedule::MakeSchedule("none", table, Costs()),
                                     {.recorder = &recorder});
    ASSERT_TRUE(replay.ok()) << replay.status();
    ASSERT_TRUE((*replay)->Run(2).ok());
    ASSERT_TRUE((*replay)->SetSchedule(*schedule::MakeSchedule("wfbp", table, Costs())).ok());
    ASSERT_TRUE((*replay)->Run(2).ok());
    std::map<int, int> transfers;  // by iteration
    for (const Span& span : recorder.Trace().spans) {
      if (span.kind == SpanKind::kTransfer) ++transfers[span.iteration];
    }
    EXPECT_EQ(transfers, (std::map<int, int>{{0, 1}, {1, 1}, {2, 10}, {3, 10}}));
  });
}

// Played computing is 1 ms; the rest of the pace is waited for, also by those who are not slowed.
TEST(ReplayPaceTest, IterationsTakeTheirPace) {
  const TensorTable table = ReplayTable(5e-5, 5e-5);
  worker::RunWorkers(2, [&](Worker& worker) {
    const auto pace =
        ComputePace::Make({.pace = {"5ms,200"}, .slow = {"1:1"}}, worker.rank(), worker.size());
    ASSERT_TRUE(pace.ok()) << pace.status();
    const auto replay = Replay::Make(worker, table, *schedule::MakeSchedule("wfbp", table, Costs()),
                                     {.pace = *pace});
    ASSERT_TRUE(replay.ok()) << replay.status();
    const auto seconds = (*replay)->Run(4);
    ASSERT_TRUE(seconds.ok()) << seconds.status();
    double all = 0;
    for (const double one : *seconds) all += one;
    // Both go as slowly as worker 1, but for its last wait: its gradients have left by then.
    EXPECT_GE(all, (worker.rank() == 1 ? 4 : 3) * 2 * 0.01 - 1e-3);
  });
}

TEST(ReplaySchedulesTest, AScheduleOfAnotherModelIsRefused) {
  worker::RunWorkers(1, [&](Worker& worker) {
    Schedule schedule = *schedule::MakeSchedule("wfbp", ReplayTable(0, 0), Costs());
    schedule.transfers.pop_back();
    EXPECT_FALSE(Replay::Make(worker, ReplayTable(0, 0), schedule, {}).ok());
  });
}

// Gives its worker a batch of 5 samples after the first iteration and ends the job after the third.
class Grows : public strategy::Strategy {
 public:
  std::string name() const override { return "replay-grows"; }
  void Step(double, const strategy::Event& event,
            std::vector<strategy::Command>& commands) override {
    if (const auto* e = std::get_if<strategy::IterationBegan>(&event)) {
      iteration_ = e->iteration;
      EXPECT_EQ(e->samples, iteration_ == 0 ? 1u : 5u);
    }
    if (const auto* e = std::get_if<strategy::ForwardNeeds>(&event)) {
      commands.push_back(strategy::Proceed{e->tensor});
    }
    if (std::holds_alternative<strategy::BackwardEnded>(event)) {
      commands.push_back(strategy::SetBatch{5});
      commands.push_back(strategy::SetProgress{.stop = iteration_ == 2});
    }
    if (std::holds_alternative<strategy::Drain>(event)) commands.push_back(strategy::Drained{});
  }

 private:
  int64_t iteration_ = 0;
};

TEST(ReplayStrategyTest, BatchesSetTheWorkAndAStopEndsIt) {
  static const absl::Status added =
      strategy::AddStrategy({.name = "replay-grows",
                             .moves = strategy::Moves::kParameters,
                             .make = [](const strategy::StrategyOptions&)
                                 -> absl::StatusOr<std::unique_ptr<strategy::Strategy>> {
                               return std::make_unique<Grows>();
                             }});
  ASSERT_TRUE(added.ok()) << added;
  const TensorTable table = ReplayTable(1e-4, 2e-4);
  worker::RunWorkers(1, [&](Worker& worker) {
    const auto replay = Replay::Make(worker, table, *schedule::MakeSchedule("none", table, Costs()),
                                     {.overlap_forward = true, .strategy = "replay-grows"});
    ASSERT_TRUE(replay.ok()) << replay.status();
    const auto seconds = (*replay)->Run(100);
    ASSERT_TRUE(seconds.ok()) << seconds.status();
    ASSERT_EQ(seconds->size(), 3u);
    // Ten tensors, one sample and then five. An iteration that began late, on a busy machine, makes up
    // for it, so the two count together.
    EXPECT_GE(seconds->at(0) + seconds->at(1), 6 * 3e-3 - 1e-4);
  });
}

// Gives everybody a turn at once, of a batch that grows with each.
class ReplayTurns : public Service {
 public:
  absl::string_view name() const override { return strategy::PermittedServer::kService; }
  ServiceStep Step(const ServiceContext&, const ServiceEvent& event) override {
    const auto* asked = std::get_if<ServiceAsked>(&event);
    if (asked == nullptr) return {};
    return {.answers = {{.to = asked->from,
                         .ticket = asked->ticket,
                         .bytes = Encode(StrategyMessage(TurnGiven{.samples = ++turns_}))}},
            .reason = ""};
  }
  std::string State() const override { return std::to_string(turns_); }
  absl::Status Load(absl::string_view state) override {
    turns_ = std::stoull(std::string(state));
    return absl::OkStatus();
  }

 private:
  uint64_t turns_ = 0;
};

// There was no store to push to, and the service was there already when the second replay began.
TEST(ReplayStrategyTest, AStrategyWithAServerIsPlayedAgainAndAgain) {
  static const absl::Status added = strategy::AddStrategy(
      {.name = "replay-server",
       .lockstep = false,
       .moves = strategy::Moves::kBoth,
       .service = strategy::PermittedServer::kService,
       .make_service =
           [](const strategy::StrategyOptions&) { return std::make_unique<ReplayTurns>(); },
       .server = 0,
       .make = [](const strategy::StrategyOptions& options)
           -> absl::StatusOr<std::unique_ptr<strategy::Strategy>> {
         return std::make_unique<strategy::PermittedServer>(
             strategy::WorkerInfo{options.rank, options.size, options.table.size()});
       }});
  ASSERT_TRUE(added.ok()) << added;
  const TensorTable table = ReplayTable(1e-5, 1e-5);
  Options options;
  options.server_ranks = {0};
  const auto play = [&](Worker& worker) {
    for (const char* planner : {"none", "wfbp", "mg-wfbp"}) {
      observe::Recorder recorder(MonotonicClock(), worker.rank(), "here");
      const auto replay =
          Replay::Make(worker, table, *schedule::MakeSchedule(planner, table, Costs()),
                       {.recorder = &recorder, .strategy = "replay-server"});
      ASSERT_TRUE(replay.ok()) << replay.status();
      const auto seconds = (*replay)->Run(3);
      ASSERT_TRUE(seconds.ok()) << planner << ": " << seconds.status();
      EXPECT_EQ(seconds->size(), 3u);
      // A push and a pull in each iteration.
      const WorkerTrace trace = recorder.Trace();
      EXPECT_EQ(std::count_if(trace.spans.begin(), trace.spans.end(),
                              [](const Span& s) { return s.kind == SpanKind::kTransfer; }),
                6);
      ASSERT_TRUE(worker.world().Barrier().ok());
    }
  };
  worker::RunWorkers(2, play, options);
}

}  // namespace
}  // namespace syncopate::sync
