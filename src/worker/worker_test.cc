// The public interface: every collective, type, reduction and kind of memory, with several workers
// as threads of this process (so that the sanitizers see all of them) against a plain reference.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plan/collective/planners.h"
#include "syncopate/syncopate.h"
#include "worker/worker_testing.h"

namespace syncopate::worker {
namespace {

using ::testing::HasSubstr;

template <typename T>
T Initial(int rank, size_t element) {
  return static_cast<T>((static_cast<size_t>(rank) * 7 + element * 3) % 11 + 1);
}

template <typename T>
double Reference(ReduceOp op, int size, size_t element) {
  double result = Initial<T>(0, element);
  for (int rank = 1; rank < size; ++rank) {
    const double value = Initial<T>(rank, element);
    switch (op) {
      case ReduceOp::kMin:
        result = std::min(result, value);
        break;
      case ReduceOp::kMax:
        result = std::max(result, value);
        break;
      case ReduceOp::kProduct:
        result *= value;
        break;
      default:
        result += value;
    }
  }
  if (op == ReduceOp::kAverage) {
    result /= size;
    if (std::is_integral_v<T>) result = std::trunc(result);
  }
  return result;
}

// A buffer in the arena or in ordinary memory.
template <typename T>
struct Memory {
  Memory(Worker& worker, size_t elements, bool arena) : plain(arena ? 0 : elements) {
    if (arena) shared.emplace(*worker.Allocate(elements * sizeof(T)));
    data = arena ? shared->template as<T>() : plain.data();
    for (size_t e = 0; e < elements; ++e) data[e] = Initial<T>(worker.rank(), e);
  }
  std::optional<Buffer> shared;
  std::vector<T> plain;
  T* data;
};

template <typename T>
void CheckAllReduce(Worker& worker, size_t elements, ReduceOp op, bool arena,
                    const std::string& algorithm) {
  SCOPED_TRACE(::testing::Message() << Name(op) << " of " << elements << " x " << sizeof(T)
                                    << " bytes, arena " << arena << ", " << algorithm);
  Memory<T> memory(worker, elements, arena);
  const absl::Status status = worker.world().Run({.collective = Collective::kAllReduce,
                                                  .data = Array::Of(memory.data, elements),
                                                  .op = op,
                                                  .algorithm = algorithm});
  ASSERT_TRUE(status.ok()) << status;
  for (size_t e = 0; e < elements; ++e) {
    const double expected = Reference<T>(op, worker.size(), e);
    ASSERT_NEAR(static_cast<double>(memory.data[e]), expected, std::abs(expected) * 1e-5) << e;
  }
}

class WorkerTest : public ::testing::TestWithParam<int> {};

TEST_P(WorkerTest, AllReducesEveryTypeAndReduction) {
  RunWorkers(GetParam(), [](Worker& worker) {
    for (ReduceOp op :
         {ReduceOp::kSum, ReduceOp::kAverage, ReduceOp::kMin, ReduceOp::kMax, ReduceOp::kProduct}) {
      for (bool arena : {true, false}) {
        for (size_t elements : {1, 3, 1000, 30000}) {
          CheckAllReduce<float>(worker, elements, op, arena, "");
          CheckAllReduce<double>(worker, elements, op, arena, "");
          CheckAllReduce<int32_t>(worker, elements, op == ReduceOp::kProduct ? ReduceOp::kSum : op,
                                  arena, "");
          CheckAllReduce<int64_t>(worker, elements, op, arena, "");
        }
      }
    }
  });
}

TEST_P(WorkerTest, EveryAlgorithmGivesTheSame) {
  RunWorkers(GetParam(), [](Worker& worker) {
    for (const plan::PlannerInfo* planner : plan::AllPlanners()) {
      if (planner->collective != Collective::kAllReduce) continue;
      for (bool arena : {true, false}) {
        for (size_t elements : {0, 1, 5, 20000}) {
          CheckAllReduce<float>(worker, elements, ReduceOp::kSum, arena, planner->name);
          CheckAllReduce<float>(worker, elements, ReduceOp::kAverage, arena, planner->name);
        }
      }
    }
  });
}

// Some members pass memory of the arena, others do not.
TEST_P(WorkerTest, MixedMemory) {
  RunWorkers(GetParam(), [](Worker& worker) {
    for (size_t elements : {10, 50000}) {
      CheckAllReduce<float>(worker, elements, ReduceOp::kSum, worker.rank() % 2 == 0, "");
    }
  });
}

TEST_P(WorkerTest, WeightedAverage) {
  RunWorkers(GetParam(), [](Worker& worker) {
    for (const char* algorithm : {"one-shot", "direct", "ring"}) {
      for (bool arena : {true, false}) {
        Memory<double> memory(worker, 2000, arena);
        const absl::Status status = worker.world().Run({.collective = Collective::kAllReduce,
                                                        .data = Array::Of(memory.data, 2000),
                                                        .op = ReduceOp::kWeightedAverage,
                                                        .weight = 1.0 + worker.rank(),
                                                        .algorithm = algorithm});
        ASSERT_TRUE(status.ok()) << status;
        for (size_t e = 0; e < 2000; ++e) {
          double sum = 0, weights = 0;
          for (int rank = 0; rank < worker.size(); ++rank) {
            sum += (1.0 + rank) * Initial<double>(rank, e);
            weights += 1.0 + rank;
          }
          ASSERT_NEAR(memory.data[e], sum / weights, 1e-9);
        }
      }
    }
  });
}

TEST_P(WorkerTest, OtherCollectives) {
  RunWorkers(GetParam(), [](Worker& worker) {
    const int n = worker.size();
    const size_t block = 777, elements = block * static_cast<size_t>(n);
    const int root = n / 2, last = n - 1;
    for (bool arena : {true, false}) {
      SCOPED_TRACE(arena);
      auto fresh = [&] { return Memory<int64_t>(worker, elements, arena); };
      auto sum = [&](size_t e) { return Reference<int64_t>(ReduceOp::kSum, n, e); };
      const size_t mine = static_cast<size_t>(worker.rank()) * block;
      {
        auto m = fresh();
        ASSERT_TRUE(worker.world().Broadcast(Array::Of(m.data, elements), root).ok());
        for (size_t e = 0; e < elements; ++e) ASSERT_EQ(m.data[e], Initial<int64_t>(root, e));
      }
      {
        auto m = fresh();
        ASSERT_TRUE(worker.world().Reduce(Array::Of(m.data, elements), ReduceOp::kSum, root).ok());
        for (size_t e = 0; e < elements && worker.rank() == root; ++e) {
          ASSERT_EQ(static_cast<double>(m.data[e]), sum(e));
        }
      }
      {
        auto m = fresh();
        ASSERT_TRUE(worker.world().AllGather(Array::Of(m.data, elements)).ok());
        for (size_t e = 0; e < elements; ++e) {
          ASSERT_EQ(m.data[e], Initial<int64_t>(static_cast<int>(e / block), e));
        }
      }
      {
        auto m = fresh();
        ASSERT_TRUE(worker.world().ReduceScatter(Array::Of(m.data, elements), ReduceOp::kSum).ok());
        for (size_t e = mine; e < mine + block; ++e) {
          ASSERT_EQ(static_cast<double>(m.data[e]), sum(e));
        }
      }
      {
        auto m = fresh();
        ASSERT_TRUE(worker.world().Gather(Array::Of(m.data, elements), root).ok());
        for (size_t e = 0; e < elements && worker.rank() == root; ++e) {
          ASSERT_EQ(m.data[e], Initial<int64_t>(static_cast<int>(e / block), e));
        }
      }
      {
        auto m = fresh();
        ASSERT_TRUE(worker.world().Scatter(Array::Of(m.data, elements), root).ok());
        for (size_t e = mine; e < mine + block; ++e) {
          ASSERT_EQ(m.data[e], Initial<int64_t>(root, e));
        }
      }
      {
        auto m = fresh();
        ASSERT_TRUE(worker.world().AllToAll(Array::Of(m.data, elements)).ok());
        for (size_t e = 0; e < elements; ++e) {
          ASSERT_EQ(m.data[e], Initial<int64_t>(static_cast<int>(e / block), mine + e % block));
        }
      }
      {
        auto m = fresh();
        ASSERT_TRUE(worker.world().SendReceive(Array::Of(m.data, elements), root, last).ok());
        const int from = worker.rank() == last ? root : worker.rank();
        for (size_t e = 0; e < elements; ++e) ASSERT_EQ(m.data[e], Initial<int64_t>(from, e));
      }
    }
  });
}

// The same program adds in the same order: all workers get the same bits, every time.
TEST_P(WorkerTest, ResultsRepeatBitForBit) {
  const size_t elements = 30000;
  // By worker: what it got from each algorithm.
  std::vector<std::vector<std::vector<float>>> results(static_cast<size_t>(GetParam()));
  RunWorkers(GetParam(), [&](Worker& worker) {
    for (const char* algorithm : {"one-shot", "direct", "ring", "recursive-doubling"}) {
      std::vector<float> first;
      for (int round = 0; round < 3; ++round) {
        std::vector<float> data(elements);
        Random random(static_cast<uint64_t>(worker.rank()) + 1);
        for (float& value : data) value = static_cast<float>(random.Unit() - 0.5) * 1e3f;
        ASSERT_TRUE(worker.world()
                        .Run({.collective = Collective::kAllReduce,
                              .data = Array::Of(data.data(), elements),
                              .op = ReduceOp::kSum,
                              .algorithm = algorithm})
                        .ok());
        if (round == 0) first = data;
        ASSERT_EQ(std::memcmp(first.data(), data.data(), elements * sizeof(float)), 0) << algorithm;
      }
      results[static_cast<size_t>(worker.rank())].push_back(first);
    }
  });
  for (const auto& result : results) {
    for (size_t i = 0; i < result.size(); ++i) {
      EXPECT_EQ(std::memcmp(result[i].data(), results[0][i].data(), elements * sizeof(float)), 0);
    }
  }
}

// 16-bit numbers are added in float32 and rounded once.
TEST_P(WorkerTest, HalfPrecision) {
  RunWorkers(GetParam(), [](Worker& worker) {
    for (size_t elements : {100, 40000}) {
      // 1.0, and the smallest step above 1, in each format: n of them are exact for few workers.
      for (auto [type, one] : {std::make_pair(DataType::kFloat16, uint16_t{0x3c00}),
                               std::make_pair(DataType::kBFloat16, uint16_t{0x3f80})}) {
        std::vector<uint16_t> data(elements, one);
        const Array array = {data.data(), elements, type};
        ASSERT_TRUE(worker.world().AllReduce(array, ReduceOp::kAverage).ok());
        for (uint16_t value : data) ASSERT_EQ(value, one);
        ASSERT_TRUE(worker.world().AllReduce(array, ReduceOp::kMax).ok());
        for (uint16_t value : data) ASSERT_EQ(value, one);
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Sizes, WorkerTest, ::testing::Values(1, 2, 3, 4, 8));

TEST(WorkerOrderTest, BarrierLetsNobodyPassEarly) {
  std::atomic<int> arrived{0};
  RunWorkers(4, [&](Worker& worker) {
    for (int round = 1; round <= 200; ++round) {
      ++arrived;
      ASSERT_TRUE(worker.world().Barrier().ok());
      ASSERT_GE(arrived, 4 * round);
    }
  });
}

TEST(WorkerOrderTest, SmallOperationOvertakesALargeOne) {
  std::atomic<int> overtaken{0};
  RunWorkers(4,
             [&](Worker& worker) {
               const size_t large_elements = 100 << 18;  // 100 MiB
               Memory<float> large(worker, large_elements, true);
               Memory<float> small(worker, 1024, true);
               for (int round = 0; round < 5; ++round) {
                 Handle slow = worker.world().Start({.collective = Collective::kAllReduce,
                                                     .data = Array::Of(large.data, large_elements),
                                                     .op = ReduceOp::kMax});
                 Handle quick = worker.world().Start({.collective = Collective::kAllReduce,
                                                      .data = Array::Of(small.data, 1024),
                                                      .op = ReduceOp::kMax,
                                                      .priority = 1});
                 ASSERT_TRUE(quick.Wait().ok());
                 overtaken += !slow.Done();
                 ASSERT_TRUE(slow.Wait().ok());
               }
             },
             {.job = {}, .timeout = {}, .arena_bytes = uint64_t{160} << 20});
  EXPECT_GE(overtaken, 9) << "of 12";
}

TEST(WorkerOrderTest, ManyOperationsAtOnce) {
  RunWorkers(3, [](Worker& worker) {
    constexpr int kOperations = 60;  // more than a group has slots
    std::vector<std::vector<int32_t>> data;
    std::vector<Handle> handles;
    for (int i = 0; i < kOperations; ++i) {
      data.emplace_back(static_cast<size_t>(100 + 300 * (i % 7)), worker.rank() + i);
    }
    for (int i = 0; i < kOperations; ++i) {
      auto& mine = data[static_cast<size_t>(i)];
      handles.push_back(worker.world().Start({.collective = Collective::kAllReduce,
                                              .data = Array::Of(mine.data(), mine.size()),
                                              .op = ReduceOp::kSum,
                                              .priority = i % 3}));
    }
    for (int i = kOperations - 1; i >= 0; --i) {
      const absl::Status status = handles[static_cast<size_t>(i)].Wait();
      ASSERT_TRUE(status.ok()) << status;
      for (int32_t value : data[static_cast<size_t>(i)]) ASSERT_EQ(value, 3 + 3 * i);
    }
  });
}

TEST(WorkerOrderTest, SeveralThreadsOfOneWorker) {
  RunWorkers(2, [](Worker& worker) {
    std::vector<Group> groups;
    for (int i = 0; i < 4; ++i) groups.push_back(*worker.NewGroup({0, 1}));
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&, i] {
        std::vector<float> data(static_cast<size_t>(10 + 1000 * i));
        for (int round = 0; round < 100; ++round) {
          std::fill(data.begin(), data.end(), static_cast<float>(worker.rank() + round));
          ASSERT_TRUE(groups[static_cast<size_t>(i)]
                          .AllReduce(Array::Of(data.data(), data.size()), ReduceOp::kSum)
                          .ok());
          ASSERT_EQ(data.back(), static_cast<float>(1 + 2 * round));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
}

TEST(WorkerGroupTest, NewGroupEveryIteration) {
  RunWorkers(4, [](Worker& worker) {
    for (int round = 0; round < 600; ++round) {  // more than a worker can have at once
      const int partner = worker.rank() ^ (1 + round % 3);
      Group pair =
          *worker.NewGroup({std::min(worker.rank(), partner), std::max(worker.rank(), partner)});
      int64_t value = worker.rank();
      ASSERT_TRUE(pair.AllReduce(Array::Of(&value, 1), ReduceOp::kSum).ok());
      ASSERT_EQ(value, worker.rank() + partner);
    }
  });
}

TEST(WorkerErrorTest, BadCallsAreRefusedBeforeAnythingMoves) {
  RunWorkers(2, [](Worker& worker) {
    std::vector<float> data(7, 1);
    std::vector<int32_t> whole(8, 1);
    Group& world = worker.world();
    EXPECT_THAT(std::string(world.Broadcast(Array::Of(data.data(), 7), 2).message()),
                HasSubstr("root 2"));
    EXPECT_THAT(std::string(world.AllGather(Array::Of(data.data(), 7)).message()),
                HasSubstr("equal blocks"));
    EXPECT_THAT(
        std::string(
            world.AllReduce(Array::Of(static_cast<float*>(nullptr), 7), ReduceOp::kSum).message()),
        HasSubstr("null"));
    EXPECT_THAT(
        std::string(
            world.AllReduce(Array::Of(whole.data(), 8), ReduceOp::kWeightedAverage).message()),
        HasSubstr("floating"));
    EXPECT_THAT(
        std::string(
            world.AllReduce(Array::Of(data.data(), 7), ReduceOp::kWeightedAverage, std::nan(""))
                .message()),
        HasSubstr("weight"));
    EXPECT_THAT(std::string(world
                                .Run({.collective = Collective::kAllReduce,
                                      .data = Array::Of(data.data(), 7),
                                      .algorithm = "nonsense"})
                                .message()),
                HasSubstr("ring"));
    EXPECT_FALSE(worker.NewGroup({0, 5}).ok());
    EXPECT_FALSE(worker.NewGroup({0, 0}).ok());
    EXPECT_FALSE(worker.NewGroup({1 - worker.rank()}).ok());
    EXPECT_EQ(worker.Allocate(uint64_t{1} << 40).status().code(),
              absl::StatusCode::kResourceExhausted);
    ASSERT_TRUE(world.Barrier().ok()) << "the group is as good as before";
  });
}

TEST(WorkerErrorTest, DifferentCallsAreReportedByAllAndTheGroupGoesOn) {
  RunWorkers(3, [](Worker& worker) {
    std::vector<float> data(100, 2);
    const size_t elements = worker.rank() == 1 ? 99 : 100;
    const absl::Status status =
        worker.world().AllReduce(Array::Of(data.data(), elements), ReduceOp::kSum);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_EQ(GetBlast(status), BlastRadius::kOperation);
    EXPECT_EQ(data, std::vector<float>(100, 2));
    EXPECT_TRUE(worker.world().Barrier().ok());
  });
}

TEST(WorkerErrorTest, MemberThatLeftIsNamed) {
  RunWorkers(3, [](Worker& worker) {
    EXPECT_EQ(worker.Live(), std::vector<int>({0, 1, 2}));
    ASSERT_TRUE(worker.world().Barrier().ok());
    if (worker.rank() == 1) return;
    std::vector<float> data(10, 1);
    const absl::Status status =
        worker.world().AllReduce(Array::Of(data.data(), 10), ReduceOp::kSum);
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_EQ(GetSuspect(status), 1);
    EXPECT_THAT(std::string(status.message()), HasSubstr("left the job"));
    EXPECT_EQ(worker.Lost(), std::vector<int>{1});
    EXPECT_EQ(worker.Live(), std::vector<int>({0, 2}));
    EXPECT_EQ(worker.size(), 3);
    EXPECT_FALSE(worker.NewGroup({0, 1, 2}).ok());
    ASSERT_TRUE(worker.NewGroup({0, 2})->Barrier().ok());
  });
}

TEST(WorkerStartTest, WorkersThatLeaveAtOnceKeepNobodyFromStarting) {
  for (int job = 0; job < 40; ++job) {
    RunWorkers(4, [](Worker& worker) {
      if (worker.rank() != 3) return;
      const absl::Status status = worker.world().Barrier();
      EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr("left the job"));
    });
  }
}

TEST(WorkerStartTest, MissingPeersAreNamed) {
  const auto worker = Worker::Start({.job = Job{"alone-" + std::to_string(getpid()), 0, 2, 0, 2},
                                     .timeout = absl::Milliseconds(50),
                                     .arena_bytes = {}});
  EXPECT_EQ(worker.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(worker.status().message()), HasSubstr("workers 1"));
}

}  // namespace
}  // namespace syncopate::worker
