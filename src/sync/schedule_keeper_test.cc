#include "sync/schedule_keeper.h"

#include <map>
#include <mutex>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "schedule/timeline.h"
#include "worker/worker_testing.h"

namespace syncopate::sync {
namespace {

using testing::HasSubstr;

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

// Which schedules come after which iterations, on every worker.
class Log {
 public:
  void Add(int rank, int64_t iteration, const Schedule& schedule) {
    const std::lock_guard lock(mutex_);
    log_[rank].emplace_back(iteration, ToText(schedule));
  }
  std::vector<int64_t> Iterations() {
    std::vector<int64_t> iterations;
    for (const auto& [iteration, text] : log_[0]) iterations.push_back(iteration);
    for (int rank = 1; rank < kWorkers; ++rank) EXPECT_EQ(log_[rank], log_[0]);
    return iterations;
  }

 private:
  std::mutex mutex_;
  std::map<int, std::vector<std::pair<int64_t, std::string>>> log_;
};

// Runs 20 iterations on every worker; `times` and `costs` say how it went.
std::vector<int64_t> NewSchedules(
    const std::function<IterationTimes(int rank, int64_t iteration)>& times,
    const std::function<cost::CommunicationCosts(int64_t iteration)>& costs,
    int* measured = nullptr) {
  Log log;
  worker::RunWorkers(kWorkers, [&](Worker& worker) {
    KeeperPolicy policy = Policy();
    int64_t now = 0;
    policy.measure = [&]() -> absl::StatusOr<cost::CommunicationCosts> {
      if (measured != nullptr && worker.rank() == 0) ++*measured;
      return costs(now);
    };
    const auto keeper = ScheduleKeeper::Make(worker, Sizes(), "search", Costs(), policy);
    ASSERT_TRUE(keeper.ok()) << keeper.status();
    EXPECT_EQ((*keeper)->schedule().planner, "bucket");
    for (now = 0; now < 20; ++now) {
      const auto made = (*keeper)->AfterIteration(now, times(worker.rank(), now),
                                                  TransfersAt(**keeper, costs(now)));
      ASSERT_TRUE(made.ok()) << made.status();
      EXPECT_TRUE(!made->has_value() || (*keeper)->LooksAfter(now));
      if (*made) {
        EXPECT_EQ(**made, (*keeper)->schedule());
        log.Add(worker.rank(), now, **made);
      }
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
  int measured = 0;
  worker::RunWorkers(kWorkers, [&](Worker& worker) {
    KeeperPolicy policy = Policy();
    policy.measure = [&]() -> absl::StatusOr<cost::CommunicationCosts> {
      if (worker.rank() == 0) ++measured;
      return Costs();
    };
    const auto keeper = ScheduleKeeper::Make(worker, Sizes(), "asc-wfbp", Costs(), policy);
    ASSERT_TRUE(keeper.ok()) << keeper.status();
    for (int64_t i = 0; i < 20; ++i) {
      // Transfers take twice what the model says, and always did.
      cost::CommunicationCosts slow = Costs();
      slow.a *= 2;
      slow.b *= 2;
      const auto made = (*keeper)->AfterIteration(i, Times(1e-3), TransfersAt(**keeper, slow));
      ASSERT_TRUE(made.ok()) << made.status();
      if (*made) log.Add(worker.rank(), i, **made);
    }
  });
  EXPECT_EQ(log.Iterations(), std::vector<int64_t>{2});
  EXPECT_EQ(measured, 1);
}

TEST(ScheduleKeeperTest, ATableWithTimesIsPlannedAtOnce) {
  TensorTable table = Sizes();
  for (TensorInfo& tensor : table.tensors) tensor.backward_seconds = 1e-3;
  worker::RunWorkers(2, [&](Worker& worker) {
    const auto keeper = ScheduleKeeper::Make(worker, table, "mg-wfbp", Costs());
    ASSERT_TRUE(keeper.ok()) << keeper.status();
    EXPECT_EQ((*keeper)->schedule(), *schedule::MakeSchedule("mg-wfbp", table, Costs()));
  });
}

TEST(ScheduleKeeperTest, PlannersWithoutTimesLookOnceForTheProfile) {
  worker::RunWorkers(2, [&](Worker& worker) {
    const auto keeper = ScheduleKeeper::Make(worker, Sizes(), "wfbp", Costs(), Policy());
    ASSERT_TRUE(keeper.ok()) << keeper.status();
    EXPECT_EQ((*keeper)->schedule().planner, "wfbp");
    for (int64_t i = 0; i < 20; ++i) {
      EXPECT_EQ((*keeper)->LooksAfter(i), i == 2);
      const auto made = (*keeper)->AfterIteration(i, Times(2e-3), {});
      ASSERT_TRUE(made.ok()) << made.status();
      EXPECT_FALSE(made->has_value());
    }
    EXPECT_NEAR((*keeper)->table().backward_seconds(), kTensors * 2e-3, 1e-9);
    EXPECT_NEAR((*keeper)->table().forward_seconds(), kTensors * 1e-3, 1e-9);
  });
}

TEST(ScheduleKeeperTest, AnUnknownPlannerIsAnErrorOnAllWorkers) {
  worker::RunWorkers(2, [&](Worker& worker) {
    const auto keeper = ScheduleKeeper::Make(worker, Sizes(), "wishful", Costs());
    const absl::Status status = keeper.status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("wishful"));
  });
}

}  // namespace
}  // namespace syncopate::sync
