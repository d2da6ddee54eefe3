// Jobs on several hosts through the public interface: every collective gives what it must, within a
// host through shared memory and between hosts over the network, and mistakes become errors.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "syncopate/status.h"
#include "tests/host_workers.h"

namespace syncopate {
namespace {

// Fails the worker with the line that did not hold.
#define REQUIRE(condition)                                                                 \
  do {                                                                                     \
    if (!(condition)) {                                                                    \
      std::fprintf(stderr, "rank %d: line %d: %s\n", worker.rank(), __LINE__, #condition); \
      return 1;                                                                            \
    }                                                                                      \
  } while (false)

struct Shape {
  int hosts;
  int slots;
};

class HostsTest : public ::testing::TestWithParam<Shape> {
 protected:
  void RunAll(const HostWorkers::Body& body) {
    const auto workers = HostWorkers::OnLoopback(GetParam().hosts, GetParam().slots, body);
    const std::vector<int> codes = workers->Join();
    for (size_t rank = 0; rank < codes.size(); ++rank) EXPECT_EQ(codes[rank], 0) << "rank " << rank;
  }
};

TEST_P(HostsTest, AllReduceOfManySizes) {
  RunAll([](Worker& worker) {
    const int n = worker.size();
    for (const uint64_t elements : {1u, 3u, 1000u, 16384u, 100003u, 1000000u}) {
      std::vector<float> heap(elements);
      absl::StatusOr<Buffer> buffer = worker.Allocate(elements * sizeof(float));
      REQUIRE(buffer.ok());
      for (float* data : {heap.data(), buffer->as<float>()}) {
        for (uint64_t i = 0; i < elements; ++i) {
          data[i] = static_cast<float>((worker.rank() + 1) * static_cast<int>(i % 7 + 1));
        }
        REQUIRE(worker.world().AllReduce(Array::Of(data, elements), ReduceOp::kSum).ok());
        for (uint64_t i = 0; i < elements; ++i) {
          REQUIRE(data[i] == static_cast<float>(n * (n + 1) / 2 * static_cast<int>(i % 7 + 1)));
        }
      }
    }
    return 0;
  });
}

TEST_P(HostsTest, EveryCollective) {
  RunAll([](Worker& worker) {
    const int n = worker.size();
    const int rank = worker.rank();
    Group& world = worker.world();
    const uint64_t block = 5000;
    const uint64_t all = block * static_cast<uint64_t>(n);
    std::vector<int32_t> data(all);
    const auto fill = [&](int32_t value) { std::fill(data.begin(), data.end(), value); };
    const auto array = Array::Of(data.data(), all);
    const auto mine = [&](uint64_t i) { return i / block == static_cast<uint64_t>(rank); };

    fill(rank + 1);
    REQUIRE(world.Reduce(array, ReduceOp::kMax, n - 1).ok());
    if (rank == n - 1) REQUIRE(data.front() == n && data.back() == n);
    fill(rank);
    REQUIRE(world.Broadcast(array, 1).ok());
    REQUIRE(data.front() == 1 && data.back() == 1);
    fill(rank + 100);
    REQUIRE(world.AllGather(array).ok());
    for (uint64_t i = 0; i < all; ++i) REQUIRE(data[i] == 100 + static_cast<int32_t>(i / block));
    fill(rank + 1);
    REQUIRE(world.ReduceScatter(array, ReduceOp::kSum).ok());
    for (uint64_t i = 0; i < all; ++i) REQUIRE(!mine(i) || data[i] == n * (n + 1) / 2);
    fill(rank + 7);
    REQUIRE(world.Gather(array, 0).ok());
    for (uint64_t i = 0; i < all; ++i) {
      REQUIRE(rank != 0 || data[i] == 7 + static_cast<int32_t>(i / block));
    }
    for (uint64_t i = 0; i < all; ++i) data[i] = static_cast<int32_t>(i) * (rank == 0 ? 1 : -1);
    REQUIRE(world.Scatter(array, 0).ok());
    for (uint64_t i = 0; i < all; ++i) REQUIRE(!mine(i) || data[i] == static_cast<int32_t>(i));
    for (uint64_t i = 0; i < all; ++i) data[i] = rank * 1000 + static_cast<int32_t>(i / block);
    REQUIRE(world.AllToAll(array).ok());
    for (uint64_t i = 0; i < all; ++i) {
      REQUIRE(data[i] == static_cast<int32_t>(i / block) * 1000 + rank);
    }
    fill(rank);
    REQUIRE(world.SendReceive(array, 0, n - 1).ok());
    if (rank == n - 1) REQUIRE(data.front() == 0 && data.back() == 0);
    for (int i = 0; i < 20; ++i) REQUIRE(world.Barrier().ok());
    return 0;
  });
}

TEST_P(HostsTest, WeightedAverageAndAverage) {
  RunAll([](Worker& worker) {
    std::vector<double> data(10000, worker.rank());
    const auto array = Array::Of(data.data(), data.size());
    REQUIRE(worker.world().AllReduce(array, ReduceOp::kAverage).ok());
    REQUIRE(std::abs(data[9999] - (worker.size() - 1) / 2.0) < 1e-12);
    std::fill(data.begin(), data.end(), worker.rank());
    // Only the last one counts.
    const double weight = worker.rank() == worker.size() - 1 ? 3 : 0;
    REQUIRE(worker.world().AllReduce(array, ReduceOp::kWeightedAverage, weight).ok());
    REQUIRE(std::abs(data[0] - (worker.size() - 1)) < 1e-12);
    return 0;
  });
}

// Programs differ in who relays: nobody (ring), or those without data as well (parameter server).
TEST_P(HostsTest, SomeAreActiveAndTheOthersRelay) {
  RunAll([](Worker& worker) {
    const int n = worker.size();
    std::vector<int> odd, ends = {0, n - 1}, first = {0}, all_but_first;
    for (int rank = 1; rank < n; ++rank) {
      if (rank % 2 == 1) odd.push_back(rank);
      all_but_first.push_back(rank);
    }
    for (const std::string algorithm : {"", "ring", "parameter-server"}) {
      for (const std::vector<int>& active : {odd, ends, first, all_but_first}) {
        const bool is_active = std::count(active.begin(), active.end(), worker.rank()) > 0;
        double sum = 0;
        for (const int rank : active) sum += rank + 1;
        for (const uint64_t elements : {0u, 1u, 1000u, 300000u}) {
          std::vector<double> data(elements, worker.rank() + 1);
          Call call = {.data = Array::Of(data.data(), elements),
                       .op = ReduceOp::kAverage,
                       .algorithm = algorithm,
                       .active = active};
          if (!is_active && elements == 1000) {
            call.data = Array::Absent(elements, DataType::kFloat64);
          }
          REQUIRE(worker.world().Run(call).ok());
          const double mean = sum / static_cast<double>(active.size());
          for (const double value : data) {
            REQUIRE(is_active ? std::abs(value - mean) < 1e-9 : value == worker.rank() + 1);
          }
        }
      }
    }
    return 0;
  });
}

TEST_P(HostsTest, ManyAtOnceAndInGroups) {
  RunAll([](Worker& worker) {
    const int n = worker.size();
    std::vector<int> halves[2];
    for (int rank = 0; rank < n; ++rank) halves[rank % 2].push_back(rank);
    absl::StatusOr<Group> half = worker.NewGroup(halves[worker.rank() % 2]);
    REQUIRE(half.ok());
    const int size = half->size();
    for (int round = 0; round < 30; ++round) {
      std::vector<std::vector<float>> data;
      std::vector<Handle> handles;
      for (int i = 0; i < 12; ++i) {
        data.emplace_back(static_cast<size_t>(i * 3001 + 1), 1.0f);
      }
      for (int i = 0; i < 12; ++i) {
        Group& group = i % 3 == 0 ? *half : worker.world();
        Call call;
        call.data =
            Array::Of(data[static_cast<size_t>(i)].data(), data[static_cast<size_t>(i)].size());
        call.priority = i % 4;
        handles.push_back(group.Start(call));
      }
      for (Handle& handle : handles) REQUIRE(handle.Wait().ok());
      for (int i = 0; i < 12; ++i) {
        const float want = static_cast<float>(i % 3 == 0 ? size : n);
        REQUIRE(data[static_cast<size_t>(i)].front() == want);
        REQUIRE(data[static_cast<size_t>(i)].back() == want);
      }
    }
    return 0;
  });
}

// The others of its host may have messages for other hosts only, and must not be forgotten.
TEST_P(HostsTest, AHostsFirstWorkerMayMakeTheGroupLast) {
  RunAll([](Worker& worker) {
    const int n = worker.size();
    std::vector<int> all(static_cast<size_t>(n));
    std::iota(all.begin(), all.end(), 0);
    for (int root = 0; root < n; ++root) {
      std::vector<int32_t> data(45000, worker.rank() + 1);
      Call call;
      call.collective = Collective::kReduce;
      call.data = Array::Of(data.data(), data.size());
      call.op = ReduceOp::kMax;
      call.root = root;
      // After the barrier, the others have begun.
      if (worker.rank() == 0) REQUIRE(worker.world().Barrier().ok());
      absl::StatusOr<Group> group = worker.NewGroup(all);
      REQUIRE(group.ok());
      Handle handle = group->Start(call);
      if (worker.rank() != 0) REQUIRE(worker.world().Barrier().ok());
      REQUIRE(handle.Wait().ok());
      if (worker.rank() == root) REQUIRE(data.front() == n && data.back() == n);
    }
    return 0;
  });
}

TEST_P(HostsTest, DifferentCallsAreAnErrorAndTheGroupGoesOn) {
  RunAll([](Worker& worker) {
    std::vector<float> data(1000, 1);
    const uint64_t elements = worker.rank() == 1 ? 999 : 1000;
    const absl::Status status =
        worker.world().AllReduce(Array::Of(data.data(), elements), ReduceOp::kSum);
    REQUIRE(status.code() == absl::StatusCode::kFailedPrecondition);
    REQUIRE(data[0] == 1);
    REQUIRE(worker.world().AllReduce(Array::Of(data.data(), 1000), ReduceOp::kSum).ok());
    REQUIRE(data[999] == static_cast<float>(worker.size()));
    return 0;
  });
}

TEST_P(HostsTest, WhoDoesNotComeIsNamed) {
  RunAll([](Worker& worker) {
    std::vector<float> data(100000, 1);
    std::vector<int> everyone(static_cast<size_t>(worker.size()));
    std::iota(everyone.begin(), everyone.end(), 0);
    absl::StatusOr<Group> other = worker.NewGroup(everyone);
    REQUIRE(other.ok());
    Call call;
    call.data = Array::Of(data.data(), data.size());
    REQUIRE(worker.world().Run(call).ok());
    std::fill(data.begin(), data.end(), 1.0f);
    REQUIRE(other->Barrier().ok());
    if (worker.rank() == 1) {
      REQUIRE(other->Barrier().ok());  // the others have given up
      const absl::Status status = worker.world().Run(call);
      REQUIRE(status.code() == absl::StatusCode::kDeadlineExceeded);
    } else {
      call.timeout = absl::Milliseconds(200);
      const absl::Status status = worker.world().Run(call);
      REQUIRE(status.code() == absl::StatusCode::kDeadlineExceeded);
      REQUIRE(GetSuspect(status) == 1);
      REQUIRE(other->Barrier().ok());
    }
    REQUIRE(data[5] == 1);
    REQUIRE(other->Barrier().ok());
    return 0;
  });
}

// Calls of a kind run by a quick choice first and by their plan later, from the same call on for all: a
// member that ran another program than the rest would fail.
TEST_P(HostsTest, CallsChangeToTheirPlansTogether) {
  RunAll([](Worker& worker) {
    std::vector<int> everyone(static_cast<size_t>(worker.size()));
    std::iota(everyone.begin(), everyone.end(), 0);
    absl::StatusOr<Group> keyed =
        worker.NewGroup(everyone, {.maker = 1, .number = 1}, worker.Network().version);
    REQUIRE(keyed.ok());
    for (int i = 0; i < 20; ++i) {
      // Workers are not equally quick, so their plans come at different calls.
      if (worker.rank() == i % worker.size()) usleep(2000);
      for (Group* group : {&worker.world(), &*keyed}) {
        for (const uint64_t elements : {100u, 50'000u}) {
          std::vector<float> data(elements, 1);
          REQUIRE(group->AllReduce(Array::Of(data.data(), elements), ReduceOp::kSum).ok());
          REQUIRE(data.front() == static_cast<float>(worker.size()));
          REQUIRE(data.back() == static_cast<float>(worker.size()));
        }
      }
    }
    std::vector<float> data(50'000, 1);
    Call call;
    call.data = Array::Absent(data.size(), DataType::kFloat32);
    REQUIRE(keyed->AwaitPlan(call).ok());
    REQUIRE(keyed->AllReduce(Array::Of(data.data(), data.size()), ReduceOp::kSum).ok());
    REQUIRE(data.back() == static_cast<float>(worker.size()));
    REQUIRE(!worker.NewGroup(everyone, {.maker = 1, .number = 2}, /*version=*/99).ok());
    return 0;
  });
}

// What versions say is the business of other tests; here that they are there, also while calls run.
TEST_P(HostsTest, TheNetworkIsKnown) {
  for (const char* upkeep : {"1", "0"}) {
    setenv("SYNCOPATE_UPKEEP", upkeep, 1);
    RunAll([&](Worker& worker) {
      const NetworkVersion first = worker.Network();
      REQUIRE(first.version == 1 && first.reason == "guessed" && !first.topology_json.empty());
      std::vector<float> data(1 << 18, 1.0f);
      for (int i = 0; i < 40; ++i) {
        REQUIRE(worker.world().AllReduce(Array::Of(data.data(), data.size()), ReduceOp::kMax).ok());
        REQUIRE(worker.Network().version >= first.version);
      }
      REQUIRE(upkeep[0] == '1' || worker.Network().version == first.version);
      return 0;
    });
  }
  unsetenv("SYNCOPATE_UPKEEP");
}

TEST(HostsSettingsTest, ASenselessSettingOfUpkeepIsRefused) {
  setenv("SYNCOPATE_UPKEEP", "maybe", 1);
  const auto workers = HostWorkers::OnLoopback(2, 1, [](Worker&) { return 0; });
  unsetenv("SYNCOPATE_UPKEEP");
  for (const int code : workers->Join()) EXPECT_NE(code, 0);
}

INSTANTIATE_TEST_SUITE_P(All, HostsTest,
                         ::testing::Values(Shape{2, 1}, Shape{5, 1}, Shape{2, 2}, Shape{3, 3}),
                         [](const auto& param) {
                           return std::to_string(param.param.hosts) + "Hosts" +
                                  std::to_string(param.param.slots) + "Each";
                         });

}  // namespace
}  // namespace syncopate
