#include "adapt/schedule_keeper.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "absl/strings/match.h"
#include "adapt/job_exchange_testing.h"
#include "adapt/value_agreement_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "schedule/timeline.h"

namespace syncopate::adapt {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kTensors = 12;
constexpr int kWorkers = 3;

TensorTable Sizes() {
  TensorTable table{.model = "test", .tensors = {}};
  for (int i = 0; i < kTensors; ++i) {
    table.tensors.push_back({.name = "t" + std::to_string(i),
                             .elements = 10'000,
                             .type = DataType::kFloat32,
                             .forward_seconds = 0,
                             .backward_seconds = 0});
  }
  return table;
}

cost::CommunicationCosts Costs() {
  return {.a = 1e-3, .b = 1e-8, .gamma = {1, 1.5}, .source = "given"};
}

KeeperPolicy Policy() {
  KeeperPolicy policy;
  policy.first_look = 3;
  policy.look_every = 5;
  policy.trials = false;  // but for tests of them
  return policy;
}

// Every tensor's backward takes `backward`.
IterationTimes Times(double backward) {
  return {.forward = std::vector<double>(kTensors, 1e-3),
          .backward = std::vector<double>(kTensors, backward)};
}

// What transfers would take by these costs under the keeper's schedule and profile.
std::vector<EndedTransfer> TransfersAt(const ScheduleKeeper& keeper,
                                       const cost::CommunicationCosts& costs) {
  const auto timeline = schedule::PredictTimeline(keeper.table(), costs, keeper.schedule());
  std::vector<EndedTransfer> transfers;
  for (size_t i = 0; i < timeline->transfers.size(); ++i) {
    const Transfer& transfer = keeper.schedule().transfers[i];
    transfers.push_back({.first = transfer.first,
                         .last = transfer.last,
                         .seconds = timeline->transfers[i].end - timeline->transfers[i].start});
  }
  return transfers;
}

// Which schedules rank 0 plans after which iterations, and from when on every worker has them.
class Log {
 public:
  void Plan(int rank, int64_t iteration) {
    EXPECT_EQ(rank, 0) << "only rank 0 plans";
    const std::lock_guard lock(mutex_);
    planned_.push_back(iteration);
  }
  void Use(int rank, int64_t from, const std::string& schedule) {
    const std::lock_guard lock(mutex_);
    used_[rank].emplace_back(from, schedule);
  }
  // After which iterations there was a plan.
  std::vector<int64_t> Iterations() {
    for (int rank = 0; rank < kWorkers; ++rank) {
      EXPECT_EQ(used_[rank].size(), planned_.size());
      EXPECT_EQ(used_[rank], used_[0]);
    }
    return planned_;
  }

 private:
  std::mutex mutex_;
  std::vector<int64_t> planned_;
  std::map<int, std::vector<std::pair<int64_t, std::string>>> used_;  // by rank
};

// One worker's schedules: what rank 0 plans counts from an iteration on that nobody has begun.
class Course {
 public:
  Course(AgreedValues& agreed, int rank) : rank_(rank), agreement_(agreed, rank) {}

  // The schedule of this iteration; null: the one to begin with.
  std::shared_ptr<const Schedule> Begin(int64_t iteration, Log* log = nullptr) {
    agreement_.Reach(iteration);
    for (const ValueAgreement::Value& value : agreement_.TakeNew()) {
      coming_.emplace_back(value.from, std::make_shared<Schedule>(*ParseSchedule(value.bytes)));
      if (log != nullptr) log->Use(rank_, value.from, value.bytes);
    }
    for (const auto& [from, schedule] : coming_) {
      if (from <= iteration) used_ = schedule;
    }
    return used_;
  }
  void Propose(const Schedule& schedule) { agreement_.Propose(++version_, ToText(schedule)); }

 private:
  const int rank_;
  InstantAgreement agreement_;
  std::vector<std::pair<int64_t, std::shared_ptr<const Schedule>>> coming_;
  std::shared_ptr<const Schedule> used_;
  uint64_t version_ = 0;
};

constexpr int64_t kMinuteNs = 60'000'000'000;

// Runs 20 iterations on every worker; `times` and `costs` say how it went. Iterations take so long
// that a measurement always fits.
std::vector<int64_t> NewSchedules(
    const std::function<IterationTimes(int rank, int64_t iteration)>& times,
    const std::function<cost::CommunicationCosts(int64_t iteration)>& costs,
    int* measured = nullptr) {
  Log log;
  AgreedValues agreed(kWorkers, /*further=*/0);
  RunRanks(kWorkers, [&](JobExchange& worker) {
    Course course(agreed, worker.rank());
    KeeperPolicy policy = Policy();
    ManualClock clock;
    policy.clock = &clock;
    int64_t now = 0;
    policy.measure = [&](double, int64_t) -> absl::StatusOr<cost::CommunicationCosts> {
      if (measured != nullptr && worker.rank() == 0) ++*measured;
      return costs(now);
    };
    const auto keeper = ScheduleKeeper::Make(worker, Sizes(), "search", Costs(), policy);
    ASSERT_TRUE(keeper.ok()) << keeper.status();
    EXPECT_EQ((*keeper)->schedule().planner, "bucket");
    for (now = 0; now < 20; ++now) {
      clock.AdvanceNs(kMinuteNs);
      const std::shared_ptr<const Schedule> used = course.Begin(now, &log);
      const auto made = (*keeper)->AfterIteration(now, times(worker.rank(), now),
                                                  TransfersAt(**keeper, costs(now)), used);
      ASSERT_TRUE(made.ok()) << made.status();
      EXPECT_TRUE(used == nullptr || (*keeper)->schedule() == *used);
      if (!made->next) continue;
      EXPECT_TRUE((*keeper)->LooksAfter(now));
      course.Propose(*made->next);
      log.Plan(worker.rank(), now);
    }
  });
  return log.Iterations();
}

TEST(ScheduleKeeperTest, PlansOnceWhenNothingChanges) {
  int measured = 0;
  EXPECT_EQ(NewSchedules(
                [](int, int64_t iteration) {
                  // The first iteration is slow; the others differ a little.
                  return Times(iteration == 0 ? 1 : 1e-3 * (1 + 0.01 * (iteration % 5)));
                },
                [](int64_t) { return Costs(); }, &measured),
            std::vector<int64_t>{2});
  EXPECT_EQ(measured, 0);
}

TEST(ScheduleKeeperTest, AnotherProfileMakesAnotherPlanAtTheSameIteration) {
  // Only one worker becomes slower, but all wait for it. It is seen at the look after iteration 12:
  // at the one after 7 the slow iterations are not yet the most.
  EXPECT_EQ(NewSchedules(
                [](int rank, int64_t iteration) {
                  return Times(rank == 1 && iteration >= 6 ? 8e-3 : 1e-3);
                },
                [](int64_t) { return Costs(); }),
            (std::vector<int64_t>{2, 12}));
}

TEST(ScheduleKeeperTest, OtherCostsMakeAnotherPlan) {
  int measured = 0;
  EXPECT_EQ(NewSchedules([](int, int64_t) { return Times(1e-3); },
                         [](int64_t iteration) {
                           cost::CommunicationCosts costs = Costs();
                           if (iteration >= 8) costs.b *= 2;
                           return costs;
                         },
                         &measured),
            (std::vector<int64_t>{2, 12}));
  EXPECT_EQ(measured, 1);
}

TEST(ScheduleKeeperTest, CostsThatProveToBeTheSameAreMeasuredOnlyOnce) {
  Log log;
  AgreedValues agreed(kWorkers, /*further=*/0);
  int measured = 0;
  RunRanks(kWorkers, [&](JobExchange& worker) {
    Course course(agreed, worker.rank());
    KeeperPolicy policy = Policy();
    ManualClock clock;
    policy.clock = &clock;
    policy.measure = [&](double, int64_t) -> absl::StatusOr<cost::CommunicationCosts> {
      if (worker.rank() == 0) ++measured;
      return Costs();
    };
    const auto keeper = ScheduleKeeper::Make(worker, Sizes(), "asc-wfbp", Costs(), policy);
    ASSERT_TRUE(keeper.ok()) << keeper.status();
    for (int64_t i = 0; i < 20; ++i) {
      clock.AdvanceNs(kMinuteNs);
      // Transfers take twice what the model says, and always did.
      cost::CommunicationCosts slow = Costs();
      slow.a *= 2;
      slow.b *= 2;
      const auto made = (*keeper)->AfterIteration(i, Times(1e-3), TransfersAt(**keeper, slow),
                                                  course.Begin(i, &log));
      ASSERT_TRUE(made.ok()) << made.status();
      if (!made->next) continue;
      course.Propose(*made->next);
      log.Plan(worker.rank(), i);
    }
  });
  EXPECT_EQ(log.Iterations(), std::vector<int64_t>{2});
  EXPECT_EQ(measured, 1);
}

// ---- measuring within a part of the time

// A job whose costs change all the time, so that every look has a reason to measure.
struct Measuring {
  int64_t iteration = 0;
  double budget = 0;
  double elapsed = 0;       // on the worker whose clock is furthest
  double spent_before = 0;  // of all measurements before, on the worker that spent most

  friend bool operator==(const Measuring&, const Measuring&) = default;
};

class MeasuringJob {
 public:
  double iteration_seconds = 0.1;
  int64_t iterations = 1000;
  KeeperPolicy policy = Policy();
  // What a measurement takes on a worker.
  std::function<double(int rank, double budget)> taken = [](int, double budget) { return budget; };
  // After each iteration of rank 0.
  std::function<void(int64_t iteration, double elapsed, const ScheduleKeeper&)> look =
      [](int64_t, double, const ScheduleKeeper&) {};

  // The measurements, which must be the same on all workers.
  std::vector<Measuring> Run() {
    std::mutex mutex;
    std::map<int, std::vector<Measuring>> all;
    AgreedValues agreed(kWorkers, /*further=*/0);
    RunRanks(kWorkers, [&](JobExchange& worker) {
      std::vector<Measuring> own = RunOne(worker, agreed);
      const std::lock_guard lock(mutex);
      all[worker.rank()] = std::move(own);
    });
    for (int rank = 1; rank < kWorkers; ++rank) EXPECT_EQ(all[rank], all[0]);
    return all[0];
  }

 private:
  std::vector<Measuring> RunOne(JobExchange& worker, AgreedValues& agreed) {
    Course course(agreed, worker.rank());
    std::vector<Measuring> measurings;
    // The workers' clocks run differently; all are simulated everywhere to know the largest.
    ManualClock clocks[kWorkers];
    double spent[kWorkers] = {};
    ManualClock& own = clocks[worker.rank()];
    const auto advance = [](ManualClock& clock, double seconds) {
      clock.AdvanceNs(static_cast<int64_t>(seconds * 1e9));
    };
    int64_t now = 0;
    const auto costs = [&] {
      cost::CommunicationCosts changed = Costs();
      changed.b *= 1 << ((now + 2) / 5 % 3);
      return changed;
    };
    KeeperPolicy own_policy = policy;
    own_policy.clock = &own;
    own_policy.measure = [&](double budget,
                             int64_t iteration) -> absl::StatusOr<cost::CommunicationCosts> {
      Measuring measuring{.iteration = iteration, .budget = budget};
      for (int rank = 0; rank < kWorkers; ++rank) {
        measuring.elapsed =
            std::max(measuring.elapsed, static_cast<double>(clocks[rank].NowNs()) * 1e-9);
        measuring.spent_before = std::max(measuring.spent_before, spent[rank]);
      }
      for (int rank = 0; rank < kWorkers; ++rank) {
        advance(clocks[rank], taken(rank, budget));
        spent[rank] += taken(rank, budget);
      }
      measurings.push_back(measuring);
      return costs();
    };
    const auto keeper = ScheduleKeeper::Make(worker, Sizes(), "search", std::nullopt, own_policy);
    EXPECT_TRUE(keeper.ok()) << keeper.status();
    if (!keeper.ok()) return measurings;
    for (; now < iterations; ++now) {
      for (int rank = 0; rank < kWorkers; ++rank) {
        advance(clocks[rank], iteration_seconds * (1 + 0.01 * rank));
      }
      const auto made = (*keeper)->AfterIteration(now, Times(1e-3), TransfersAt(**keeper, costs()),
                                                  course.Begin(now));
      EXPECT_TRUE(made.ok()) << made.status();
      if (made.ok() && made->next) course.Propose(*made->next);
      if (worker.rank() == 0) look(now, static_cast<double>(own.NowNs()) * 1e-9, **keeper);
    }
    return measurings;
  }
};

TEST(KeeperMeasuringTest, NeverTakesMoreThanItsPartAndIsPutOffUntilItFits) {
  MeasuringJob job;
  int looks_put_off = 0;
  job.look = [&](int64_t iteration, double elapsed, const ScheduleKeeper& keeper) {
    EXPECT_LE(keeper.measuring_seconds(), 0.03 * 1.02 * elapsed + 1e-9) << iteration;
    if (iteration % 5 != 2) return;
    looks_put_off += absl::StrContains(keeper.reason(), "put off");
    if (elapsed > 8) return;
    EXPECT_EQ(keeper.schedule().planner, "bucket");
    EXPECT_TRUE(keeper.waits_for_costs());
    EXPECT_THAT(keeper.reason(), HasSubstr("measuring costs is put off"));
  };
  const std::vector<Measuring> measurings = job.Run();
  // 100 s allow 3 s, a measurement takes 0.25 s or a little more.
  ASSERT_GE(measurings.size(), 6u);
  ASSERT_LE(measurings.size(), 12u);
  for (const Measuring& each : measurings) {
    EXPECT_LE(each.spent_before + each.budget, 0.03 * each.elapsed + 1e-6) << each.iteration;
    EXPECT_GE(each.budget, 0.25) << each.iteration;
  }
  // At the first look at which it fits.
  EXPECT_GE(measurings[0].elapsed, 0.25 / 0.03);
  EXPECT_LE(measurings[0].elapsed, 0.25 / 0.03 + 5 * 0.102);
  EXPECT_GT(looks_put_off, 50);
}

TEST(KeeperMeasuringTest, WhatTookTooLongPutsOffTheNext) {
  MeasuringJob job;
  job.iterations = 1500;
  job.taken = [](int rank, double budget) { return rank == 1 ? 3 : budget; };
  const std::vector<Measuring> measurings = job.Run();
  ASSERT_EQ(measurings.size(), 2u);
  EXPECT_LE(measurings[0].elapsed, 9);
  EXPECT_DOUBLE_EQ(measurings[1].spent_before, 3);
  EXPECT_GE(measurings[1].elapsed, (3 + 0.25) / 0.03);
  EXPECT_LE(measurings[1].elapsed, (3 + 0.25) / 0.03 + 10 * 0.102 + 3);
}

TEST(KeeperMeasuringTest, LongJobsMeasureAsLongAsIsWorthIt) {
  MeasuringJob job;
  job.iteration_seconds = 100;
  job.iterations = 30;
  const std::vector<Measuring> measurings = job.Run();
  ASSERT_GE(measurings.size(), 3u);
  EXPECT_EQ(measurings[0].iteration, 2);
  EXPECT_EQ(measurings[0].budget, 2);
  EXPECT_EQ(measurings[1].budget, 1);
}

TEST(KeeperMeasuringTest, CanComeFirstWhateverItTakes) {
  MeasuringJob job;
  job.iterations = 50;
  job.policy.measure_first = true;
  job.look = [](int64_t iteration, double, const ScheduleKeeper& keeper) {
    EXPECT_FALSE(keeper.waits_for_costs());
    // It is planned after iteration 2, and no worker begins iteration 8 without rank 0.
    if (iteration > 2 && iteration <= 8) return;
    EXPECT_EQ(keeper.schedule().planner, iteration <= 2 ? "bucket" : "search");
  };
  const std::vector<Measuring> measurings = job.Run();
  ASSERT_EQ(measurings.size(), 1u);  // and it counts: nothing else fits in 5 s
  EXPECT_EQ(measurings[0].iteration, -1);
  EXPECT_EQ(measurings[0].budget, 2);
}

TEST(KeeperMeasuringTest, PlannersWithoutCostsAndSingleWorkersNeverMeasure) {
  for (const auto& [planner, workers] : {std::pair{"bucket", 2}, std::pair{"search", 1}}) {
    RunRanks(workers, [&, planner = planner](JobExchange& worker) {
      KeeperPolicy policy = Policy();
      ManualClock clock;
      policy.clock = &clock;
      policy.measure_first = true;
      policy.measure = [](double, int64_t) -> absl::StatusOr<cost::CommunicationCosts> {
        ADD_FAILURE() << "measured";
        return Costs();
      };
      const auto keeper = ScheduleKeeper::Make(worker, Sizes(), planner, std::nullopt, policy);
      ASSERT_TRUE(keeper.ok()) << keeper.status();
      for (int64_t i = 0; i < 20; ++i) {
        clock.AdvanceNs(kMinuteNs);
        ASSERT_TRUE((*keeper)->AfterIteration(i, Times(1e-3), {}, nullptr).ok());
      }
      EXPECT_FALSE((*keeper)->waits_for_costs());
      EXPECT_THAT((*keeper)->reason(), Not(HasSubstr("put off")));
    });
  }
}

TEST(KeeperMeasuringTest, RefusesALeastAboveTheMost) {
  RunRanks(1, [&](JobExchange& worker) {
    KeeperPolicy policy = Policy();
    policy.measure_seconds_min = 1.5;
    EXPECT_EQ(ScheduleKeeper::Make(worker, Sizes(), "search", Costs(), policy).status().code(),
              absl::StatusCode::kInvalidArgument);
  });
}

// ---- trials

// 200 iterations in which those with another schedule than the first take `factor` times as long.
struct TriedSchedules {
  std::vector<std::string> events;  // of rank 0
  std::string last;                 // the planner of the schedule in use in the end
  int with_other = 0;               // iterations
};

TriedSchedules TrySchedules(double factor, KeeperPolicy policy, int64_t outside_every = 0) {
  policy.trials = true;
  policy.look_every = 25;
  TriedSchedules result;
  AgreedValues agreed(kWorkers, /*further=*/1);
  RunRanks(kWorkers, [&](JobExchange& worker) {
    Course course(agreed, worker.rank());
    KeeperPolicy own = policy;
    ManualClock clock;
    own.clock = &clock;
    int64_t outside_ns = 0;
    own.outside_ns = [&] { return outside_ns; };
    const auto keeper = ScheduleKeeper::Make(worker, Sizes(), "search", Costs(), own);
    ASSERT_TRUE(keeper.ok()) << keeper.status();
    for (int64_t i = 0; i < 200; ++i) {
      ASSERT_TRUE(TextsOfAll(worker, "gradients", "").ok());  // nobody runs ahead
      const std::shared_ptr<const Schedule> used = course.Begin(i);
      const bool other = used != nullptr && used->planner == "search";
      clock.AdvanceNs(static_cast<int64_t>(1e8 * (other ? factor : 1)));
      if (outside_every > 0 && i % outside_every == 0) {
        // An evaluation; the iteration after it finds all transfers ended.
        outside_ns += 1'000'000'000;
        clock.AdvanceNs(1'000'000'000);
      }
      const auto made =
          (*keeper)->AfterIteration(i, Times(1e-3), TransfersAt(**keeper, Costs()), used);
      ASSERT_TRUE(made.ok()) << made.status();
      EXPECT_TRUE(worker.rank() == 0 || (!made->next && made->event.empty()));
      if (made->next) course.Propose(*made->next);
      if (worker.rank() != 0) continue;
      if (!made->event.empty()) result.events.push_back(made->event);
      result.with_other += other ? 1 : 0;
      result.last = (*keeper)->schedule().planner;
    }
  });
  return result;
}

TEST(KeeperTrialTest, ABetterScheduleStaysAndIsSaid) {
  const TriedSchedules tried = TrySchedules(0.8, Policy());
  EXPECT_EQ(tried.last, "search");
  ASSERT_EQ(tried.events.size(), 2u);
  EXPECT_THAT(tried.events[0], HasSubstr("planned search: "));
  EXPECT_THAT(tried.events[0], HasSubstr("; it is tried"));
  EXPECT_THAT(tried.events[1], HasSubstr("80 ms an iteration instead of 100 ms: it stays"));
}

TEST(KeeperTrialTest, AWorseScheduleIsTakenBack) {
  const TriedSchedules tried = TrySchedules(1.2, Policy());
  EXPECT_EQ(tried.last, "bucket");
  ASSERT_EQ(tried.events.size(), 2u);
  EXPECT_THAT(tried.events[1], HasSubstr("the one before stays"));
  // Each of the three turns has the iterations that it needs, and those until it ends everywhere.
  EXPECT_LE(tried.with_other, 2 * PlanTrial::kTurn + 3 * 4);
}

TEST(KeeperTrialTest, EvaluationsBetweenIterationsDoNotCount) {
  for (const double factor : {0.8, 1.2}) {
    const TriedSchedules tried = TrySchedules(factor, Policy(), /*outside_every=*/3);
    EXPECT_EQ(tried.last, factor < 1 ? "search" : "bucket");
  }
}

TEST(KeeperTrialTest, TheFirstScheduleAfterMeasuringFirstIsTrusted) {
  KeeperPolicy policy = Policy();
  policy.measure_first = true;
  const TriedSchedules tried = TrySchedules(1.2, policy);
  EXPECT_EQ(tried.last, "search");
  ASSERT_EQ(tried.events.size(), 1u);
  EXPECT_THAT(tried.events[0], Not(HasSubstr("tried")));
}

TEST(KeeperTrialTest, WithoutUpkeepNothingIsMeasuredPlannedOrTried) {
  KeeperPolicy policy = Policy();
  policy.upkeep = false;
  policy.measure = [](double, int64_t) -> absl::StatusOr<cost::CommunicationCosts> {
    ADD_FAILURE() << "measured";
    return Costs();
  };
  const TriedSchedules tried = TrySchedules(0.5, policy);
  EXPECT_EQ(tried.last, "bucket");
  EXPECT_TRUE(tried.events.empty());
}

TEST(ScheduleKeeperTest, ATableWithTimesIsPlannedAtOnce) {
  TensorTable table = Sizes();
  for (TensorInfo& tensor : table.tensors) tensor.backward_seconds = 1e-3;
  RunRanks(2, [&](JobExchange& worker) {
    const auto keeper = ScheduleKeeper::Make(worker, table, "mg-wfbp", Costs());
    ASSERT_TRUE(keeper.ok()) << keeper.status();
    EXPECT_EQ((*keeper)->schedule(), *schedule::MakeSchedule("mg-wfbp", table, Costs()));
  });
}

TEST(ScheduleKeeperTest, PlannersWithoutTimesLookOnceForTheProfile) {
  RunRanks(2, [&](JobExchange& worker) {
    const auto keeper = ScheduleKeeper::Make(worker, Sizes(), "wfbp", Costs(), Policy());
    ASSERT_TRUE(keeper.ok()) << keeper.status();
    EXPECT_EQ((*keeper)->schedule().planner, "wfbp");
    for (int64_t i = 0; i < 20; ++i) {
      EXPECT_EQ((*keeper)->LooksAfter(i), i == 2);
      const auto made = (*keeper)->AfterIteration(i, Times(2e-3), {}, nullptr);
      ASSERT_TRUE(made.ok()) << made.status();
      EXPECT_FALSE(made->next.has_value());
    }
    EXPECT_NEAR((*keeper)->table().backward_seconds(), kTensors * 2e-3, 1e-9);
    EXPECT_NEAR((*keeper)->table().forward_seconds(), kTensors * 1e-3, 1e-9);
  });
}

TEST(ScheduleKeeperTest, AnUnknownPlannerIsAnErrorOnAllWorkers) {
  RunRanks(2, [&](JobExchange& worker) {
    const auto keeper = ScheduleKeeper::Make(worker, Sizes(), "wishful", Costs());
    const absl::Status status = keeper.status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("wishful"));
  });
}

}  // namespace
}  // namespace syncopate::adapt
