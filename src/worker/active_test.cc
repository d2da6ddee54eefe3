// All-reduces in which only some workers are active, through the public interface on one host: the
// active ones get the reduction of their data, the data of the others stays as it is.
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plan/collective/planners.h"
#include "syncopate/syncopate.h"
#include "worker/worker_testing.h"

namespace syncopate::worker {
namespace {

using ::testing::HasSubstr;

constexpr int kActiveWorkers = 5;
const std::vector<std::vector<int>> kActiveSets = {
    {0}, {3}, {0, 1}, {1, 4}, {0, 2, 3}, {1, 2, 3, 4}, {4, 0, 2}, {0, 1, 2, 3, 4}};

bool IsIn(const std::vector<int>& ranks, int rank) {
  return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
}

template <typename T>
T ActiveInitial(int rank, size_t element) {
  return static_cast<T>((static_cast<size_t>(rank) * 7 + element * 3) % 11 + 1);
}

// What the active ones must get; their weights are rank + 1.
template <typename T>
double Reference(ReduceOp op, const std::vector<int>& active, size_t element) {
  double sum = 0, weights = 0;
  for (const int rank : active) {
    const double weight = op == ReduceOp::kWeightedAverage ? rank + 1 : 1;
    sum += weight * static_cast<double>(ActiveInitial<T>(rank, element));
    weights += weight;
  }
  if (op == ReduceOp::kSum) return sum;
  return std::is_integral_v<T> ? std::trunc(sum / weights) : sum / weights;
}

template <typename T>
void Check(Worker& worker, const std::vector<int>& active, size_t elements, ReduceOp op, bool arena,
           const std::string& algorithm) {
  SCOPED_TRACE(absl::StrCat(Name(op), " of ", elements, " x ", sizeof(T), " bytes, arena ", arena,
                            ", active ", absl::StrJoin(active, ","), " ", algorithm));
  std::vector<T> plain(arena ? 0 : elements);
  absl::StatusOr<Buffer> buffer = worker.Allocate(std::max<size_t>(1, elements) * sizeof(T));
  ASSERT_TRUE(buffer.ok()) << buffer.status();
  T* data = arena ? buffer->as<T>() : plain.data();
  for (size_t e = 0; e < elements; ++e) data[e] = ActiveInitial<T>(worker.rank(), e);
  const absl::Status status = worker.world().Run({.collective = Collective::kAllReduce,
                                                  .data = Array::Of(data, elements),
                                                  .op = op,
                                                  .weight = 1.0 + worker.rank(),
                                                  .algorithm = algorithm,
                                                  .active = active});
  ASSERT_TRUE(status.ok()) << status;
  const bool is_active = IsIn(active, worker.rank());
  for (size_t e = 0; e < elements; ++e) {
    if (!is_active) {
      const T before = ActiveInitial<T>(worker.rank(), e);
      ASSERT_EQ(std::memcmp(&data[e], &before, sizeof(T)), 0) << e << ": it was not active";
      continue;
    }
    const double expected = Reference<T>(op, active, e);
    ASSERT_NEAR(static_cast<double>(data[e]), expected, std::abs(expected) * 1e-5) << e;
  }
}

TEST(ActiveTest, OnlyTheActiveAreReduced) {
  RunWorkers(kActiveWorkers, [](Worker& worker) {
    for (const std::vector<int>& active : kActiveSets) {
      for (const bool arena : {true, false}) {
        for (const size_t elements : {0, 1, 4, 1000, 30000, 1000000}) {
          Check<float>(worker, active, elements, ReduceOp::kSum, arena, "");
          if (elements == 1000000) continue;
          Check<float>(worker, active, elements, ReduceOp::kAverage, arena, "");
          Check<double>(worker, active, elements, ReduceOp::kWeightedAverage, arena, "");
          Check<int64_t>(worker, active, elements, ReduceOp::kAverage, arena, "");
        }
      }
    }
  });
}

TEST(ActiveTest, EveryAlgorithm) {
  RunWorkers(kActiveWorkers, [](Worker& worker) {
    for (const plan::PlannerInfo* planner : plan::AllPlanners()) {
      if (planner->collective != Collective::kAllReduce) continue;
      for (const std::vector<int>& active : kActiveSets) {
        for (const size_t elements : {0, 3, 20000}) {
          Check<float>(worker, active, elements, ReduceOp::kAverage, true, planner->name);
        }
      }
    }
  });
}

// Who is not active needs no memory, and neither its weight nor anything else of it counts.
TEST(ActiveTest, TheOthersNeedNoData) {
  RunWorkers(kActiveWorkers, [](Worker& worker) {
    const std::vector<int> active = {1, 3};
    for (const size_t elements : {0, 1, 50000}) {
      std::vector<double> data(elements, worker.rank());
      const bool is_active = IsIn(active, worker.rank());
      const Array array = is_active ? Array::Of(data.data(), elements)
                                    : Array::Absent(elements, DataType::kFloat64);
      const double weight = is_active ? worker.rank() : std::nan("");
      absl::Status status =
          worker.world().AllReduceAmong(active, array, ReduceOp::kWeightedAverage, weight);
      ASSERT_TRUE(status.ok()) << status;
      for (const double value : data) {
        ASSERT_NEAR(value, is_active ? (1 * 1 + 3 * 3) / 4.0 : worker.rank(), 1e-12);
      }
    }
  });
}

// Different active sets are different programs, also when everything else is the same.
TEST(ActiveTest, SetsMayChangeFromCallToCall) {
  RunWorkers(4, [](Worker& worker) {
    std::vector<int32_t> data(100);
    for (int round = 0; round < 60; ++round) {
      std::vector<int> active;  // empty in some rounds: all
      for (int rank = 0; rank < 4; ++rank) {
        if ((round % 16) >> rank & 1) active.push_back(rank);
      }
      std::fill(data.begin(), data.end(), 1);
      ASSERT_TRUE(
          worker.world().AllReduceAmong(active, Array::Of(data.data(), 100), ReduceOp::kSum).ok());
      const int all = active.empty() ? 4 : static_cast<int>(active.size());
      const bool is_active = active.empty() || IsIn(active, worker.rank());
      ASSERT_EQ(data, std::vector<int32_t>(100, is_active ? all : 1));
    }
  });
}

TEST(ActiveTest, BadSetsAreRefused) {
  RunWorkers(3, [](Worker& worker) {
    std::vector<float> data(6, 1);
    const Array array = Array::Of(data.data(), data.size());
    Group& world = worker.world();
    const auto message = [](const absl::Status& status) {
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
      return std::string(status.message());
    };
    EXPECT_THAT(message(world.AllReduceAmong({0, 3}, array, ReduceOp::kSum)),
                HasSubstr("active rank 3 is not a rank of a group of 3"));
    EXPECT_THAT(message(world.AllReduceAmong({-1, 0}, array, ReduceOp::kSum)),
                HasSubstr("active rank -1"));
    EXPECT_THAT(message(world.AllReduceAmong({2, 0, 2}, array, ReduceOp::kSum)),
                HasSubstr("2 stands there twice"));
    EXPECT_THAT(
        message(world.Run({.collective = Collective::kBroadcast, .data = array, .active = {0}})),
        HasSubstr("only an all-reduce"));
    EXPECT_THAT(message(world.AllReduceAmong({worker.rank()}, Array::Absent(6, DataType::kFloat32),
                                             ReduceOp::kSum)),
                HasSubstr("null"));
    ASSERT_TRUE(world.Barrier().ok()) << "the group is as good as before";
  });
}

TEST(ActiveTest, DifferentSetsAreReportedByAllAndTheGroupGoesOn) {
  RunWorkers(3, [](Worker& worker) {
    std::vector<float> data(100, 2);
    const std::vector<int> active = worker.rank() == 2 ? std::vector<int>{0} : std::vector{0, 1};
    const absl::Status status =
        worker.world().AllReduceAmong(active, Array::Of(data.data(), 100), ReduceOp::kSum);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_EQ(data, std::vector<float>(100, 2));
    EXPECT_TRUE(worker.world().Barrier().ok());
  });
}

TEST(ActiveTest, AnInactiveMemberThatLeftIsNamed) {
  RunWorkers(4, [](Worker& worker) {
    ASSERT_TRUE(worker.world().Barrier().ok());
    if (worker.rank() == 2) return;
    std::vector<float> data(5000, 1);
    const absl::Status status =
        worker.world().AllReduceAmong({0, 1}, Array::Of(data.data(), data.size()), ReduceOp::kSum);
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_EQ(GetSuspect(status), 2);
    EXPECT_EQ(data, std::vector<float>(5000, 1));
  });
}

}  // namespace
}  // namespace syncopate::worker
