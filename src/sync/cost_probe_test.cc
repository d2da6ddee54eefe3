#include "sync/cost_probe.h"

#include <map>
#include <mutex>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/worker_testing.h"

namespace syncopate::sync {
namespace {

TEST(CostProbeTest, AllWorkersGetTheSameCostsWithTheirPoints) {
  std::mutex mutex;
  std::map<int, CostMeasurement> found;
  CostProbeOptions options;
  options.budget_seconds = 0.3;
  options.bytes_max = 1 << 20;
  worker::RunWorkers(3, [&](Worker& worker) {
    const auto measured = MeasureCosts(worker, options);
    ASSERT_TRUE(measured.ok()) << measured.status();
    const std::lock_guard lock(mutex);
    found[worker.rank()] = *measured;
  });
  ASSERT_EQ(found.size(), 3u);
  for (const auto& [rank, measured] : found) {
    EXPECT_EQ(measured.fit.costs, found[0].fit.costs) << rank;
    EXPECT_EQ(measured.fit.points, found[0].fit.points) << rank;
    EXPECT_EQ(measured.fit.fitted, found[0].fit.fitted) << rank;
  }
  const cost::CostFit& fit = found[0].fit;
  EXPECT_TRUE(Validate(fit.costs).ok()) << Validate(fit.costs);
  EXPECT_EQ(fit.costs.gamma.size(), 4u);
  EXPECT_GT(fit.costs.a + fit.costs.b, 0);
  std::set<uint64_t> alone;
  std::set<int> at_once;
  for (const cost::CostPoint& point : fit.points) {
    if (point.at_once == 1) alone.insert(point.bytes);
    at_once.insert(point.at_once);
    EXPECT_LE(2 * point.bytes * static_cast<uint64_t>(point.at_once), options.bytes_max);
    EXPECT_GT(point.seconds, 0);
  }
  EXPECT_GE(alone.size(), 3u);
  EXPECT_EQ(at_once, (std::set<int>{1, 2, 3, 4}));
}

TEST(CostProbeTest, ThreeSizesAreMeasuredEvenWithoutTime) {
  CostProbeOptions options;
  options.budget_seconds = 0;
  options.repetitions = 1;
  worker::RunWorkers(2, [&](Worker& worker) {
    const auto measured = MeasureCosts(worker, options);
    ASSERT_TRUE(measured.ok()) << measured.status();
    EXPECT_EQ(measured->fit.points.size(), 3u + 3u);  // and the smallest, 2, 3 and 4 at once
  });
}

// A short budget makes points shorter, not fewer than are needed. Each of these takes what it takes
// on a busy machine, but one with a hundredth of the time must take less.
TEST(CostProbeTest, AShortBudgetTakesLessWallTime) {
  std::mutex mutex;
  std::map<int, std::pair<double, double>> took;
  worker::RunWorkers(2, [&](Worker& worker) {
    CostProbeOptions options;
    options.computing_threads = 1;
    options.budget_seconds = 2;
    const auto with_time = MeasureCosts(worker, options);
    ASSERT_TRUE(with_time.ok()) << with_time.status();
    options.budget_seconds = 0.02;
    const auto without = MeasureCosts(worker, options);
    ASSERT_TRUE(without.ok()) << without.status();
    EXPECT_GE(without->fit.points.size(), 6u);
    const std::lock_guard lock(mutex);
    took[worker.rank()] = {with_time->seconds, without->seconds};
  });
  EXPECT_EQ(took[0], took[1]);  // agreed on
  EXPECT_LT(took[0].second, 0.5 * took[0].first);
}

TEST(CostProbeTest, AStartUpBesideComputingIsMeasuredWithBusyThreads) {
  std::mutex mutex;
  std::map<int, CostMeasurement> found;
  CostProbeOptions options;
  options.budget_seconds = 0;
  options.repetitions = 1;
  options.computing_threads = 1;
  worker::RunWorkers(2, [&](Worker& worker) {
    const auto measured = MeasureCosts(worker, options);
    ASSERT_TRUE(measured.ok()) << measured.status();
    const std::lock_guard lock(mutex);
    found[worker.rank()] = *measured;
  });
  ASSERT_EQ(found.size(), 2u);
  EXPECT_GT(found[0].startup_beside_computing, 0);
  EXPECT_EQ(found[0].startup_beside_computing, found[1].startup_beside_computing);
  EXPECT_EQ(found[0].fit.costs, found[1].fit.costs);
  EXPECT_GE(found[0].fit.costs.a, found[0].startup_beside_computing);
}

TEST(CostProbeTest, OneWorkerAloneCommunicatesForNothing) {
  worker::RunWorkers(1, [](Worker& worker) {
    const auto measured = MeasureCosts(worker);
    ASSERT_TRUE(measured.ok()) << measured.status();
    EXPECT_EQ(measured->fit.costs.Seconds(1e6), 0);
    EXPECT_TRUE(Validate(measured->fit.costs).ok());
  });
}

TEST(CostProbeTest, RefusesOptionsThatLeaveNothingToMeasure) {
  worker::RunWorkers(1, [](Worker& worker) {
    CostProbeOptions options;
    options.bytes_max = 1024;
    EXPECT_EQ(MeasureCosts(worker, options).status().code(), absl::StatusCode::kInvalidArgument);
    options = {};
    options.repetitions = 0;
    EXPECT_EQ(MeasureCosts(worker, options).status().code(), absl::StatusCode::kInvalidArgument);
  });
}

}  // namespace
}  // namespace syncopate::sync
