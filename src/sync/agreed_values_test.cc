// Schedules and topologies that workers at different iterations agree on, as threads of this process.
#include "sync/agreed_values.h"

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/schedule.h"
#include "model/topology.h"
#include "model/topology_makers.h"
#include "worker/worker_testing.h"

namespace syncopate::sync {
namespace {

constexpr int kTensors = 4;

int64_t InAMinute() { return MonotonicClock().NowNs() + 60'000'000'000; }

std::shared_ptr<const Schedule> ScheduleOf(int transfers) {
  auto schedule = std::make_shared<Schedule>();
  schedule->planner = "test";
  for (int i = 0; i < transfers; ++i) {
    Transfer transfer;
    transfer.last = kTensors - 1 - i;
    transfer.first = i + 1 == transfers ? 0 : transfer.last;
    schedule->transfers.push_back(transfer);
  }
  return schedule;
}

// What a strategy may be told: the schedules' transfers, and the topologies' versions.
struct Told {
  std::vector<std::pair<int64_t, size_t>> schedules;
  std::vector<std::pair<int64_t, uint64_t>> topologies;

  void Add(const strategy::NewValue& value) {
    if (const auto* schedule = std::get_if<std::shared_ptr<const Schedule>>(&value.value)) {
      schedules.emplace_back(value.from, (*schedule)->transfers.size());
    } else {
      const auto& topology = std::get<std::shared_ptr<const Topology>>(value.value);
      topologies.emplace_back(value.from, topology->version);
    }
  }
  friend bool operator==(const Told&, const Told&) = default;
};

TEST(AgreedValuesTest, WorkersAtDifferentIterationsAreToldTheSameBeforeItCounts) {
  constexpr int kWorkers = 3;
  std::mutex mutex;
  std::vector<Told> all;
  worker::RunWorkers(kWorkers, [&](Worker& worker) {
    AgreedValues first(worker, 1, kTensors), second(worker, 2, kTensors);
    for (AgreedValues* values : {&first, &second}) {
      values->BeginSchedules(0);
      values->BeginTopologies(0);
    }
    Told told;
    for (int64_t iteration = 1; iteration <= 200; ++iteration) {
      auto values = first.Reach(iteration, InAMinute());
      ASSERT_TRUE(values.ok()) << values.status();
      for (const strategy::NewValue& value : *values) {
        EXPECT_GE(value.from, iteration) << "it came too late";
        told.Add(value);
      }
      if (worker.rank() == 1 && iteration % 50 == 0 && iteration < 200) {
        first.Propose(ScheduleOf(static_cast<int>(iteration / 50) + 1));
      }
      if (worker.rank() == 0 && iteration == 70) {
        Topology topology = StarTopology(kWorkers, 1e9, 1e-5);
        topology.version = 7;
        first.Propose(std::make_shared<const Topology>(topology));
        // Of another number of tensors: nobody uses it.
        first.Propose(ScheduleOf(kTensors + 1));
      }
      // The iterations of the other synchronizer are its own, and nobody proposes anything for it.
      if (iteration % 2 == 0) {
        ASSERT_TRUE(second.Reach(iteration / 2, InAMinute())->empty());
      }
      std::this_thread::sleep_for(std::chrono::microseconds(100 * (worker.rank() + 1)));
    }
    ASSERT_TRUE(worker.world().Barrier().ok());
    // A quick worker may have ended before the last one was proposed; it cannot go on without it.
    const auto rest = first.Reach(10'000, InAMinute());
    ASSERT_TRUE(rest.ok()) << rest.status();
    for (const strategy::NewValue& value : *rest) told.Add(value);
    const std::lock_guard lock(mutex);
    all.push_back(told);
  });
  for (const Told& told : all) {
    ASSERT_EQ(told.schedules.size(), 3u);
    EXPECT_EQ(told.schedules[2].second, 4u);
    ASSERT_EQ(told.topologies.size(), 1u);
    EXPECT_EQ(told.topologies[0].second, 7u);
    EXPECT_EQ(told, all[0]);
  }
}

// A job could agree on values of 64 kinds.
TEST(AgreedValuesTest, AnyNumberOfSynchronizersAgreeOneAfterTheOther) {
  worker::RunWorkers(2, [](Worker& worker) {
    for (int number = 0; number < 100; ++number) {
      AgreedValues values(worker, number, kTensors);
      values.BeginSchedules(0);
      ASSERT_TRUE(worker.world().Barrier().ok());
      if (worker.rank() == 0) values.Propose(ScheduleOf(2));
      size_t told = 0;
      const int64_t deadline_ns = InAMinute();
      for (int64_t iteration = 1; told == 0 && MonotonicClock().NowNs() < deadline_ns;
           ++iteration) {
        const auto reached = values.Reach(iteration, deadline_ns);
        ASSERT_TRUE(reached.ok()) << reached.status();
        told += reached->size();
        std::this_thread::yield();
      }
      ASSERT_EQ(told, 1u) << "synchronizer " << number;
    }
  });
}

}  // namespace
}  // namespace syncopate::sync
