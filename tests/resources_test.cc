// What workers cost: time to use a new group, processor time while idle, memory beside the arena.
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <string>

#include "gtest/gtest.h"
#include "tests/worker_processes.h"

namespace syncopate {
namespace {

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<long>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

TEST(ResourcesTest, FirstUseOfANewGroupCostsAtMostThreeTimesAsMuch) {
  Shared<std::array<std::atomic<int64_t>, 2>> medians_ns;  // cached, fresh
  WorkerProcesses workers(4, [&](Worker& worker) {
    constexpr size_t kElements = 1 << 18;
    absl::StatusOr<Buffer> buffer = worker.Allocate(kElements * sizeof(float));
    const Array array = Array::Of(buffer->as<float>(), kElements);
    std::fill(buffer->as<float>(), buffer->as<float>() + kElements, 0.0f);
    const std::vector<int> everyone = {0, 1, 2, 3};
    Group cached = *worker.NewGroup(everyone);
    std::vector<double> cached_s, fresh_s;
    for (int round = 0; round < 200; ++round) {
      if (!worker.world().Barrier().ok()) return 1;
      absl::Time start = absl::Now();
      if (!cached.AllReduce(array, ReduceOp::kSum).ok()) return 2;
      cached_s.push_back(absl::ToDoubleSeconds(absl::Now() - start));
      if (!worker.world().Barrier().ok()) return 3;
      start = absl::Now();
      absl::StatusOr<Group> fresh = worker.NewGroup(everyone);
      if (!fresh.ok() || !fresh->AllReduce(array, ReduceOp::kSum).ok()) return 4;
      fresh_s.push_back(absl::ToDoubleSeconds(absl::Now() - start));
    }
    if (worker.rank() == 0) {
      (*medians_ns)[0] = static_cast<int64_t>(1e9 * Median(cached_s));
      (*medians_ns)[1] = static_cast<int64_t>(1e9 * Median(fresh_s));
    }
    return 0;
  });
  for (int code : workers.Join()) ASSERT_EQ(code, 0);
  const double ratio =
      static_cast<double>((*medians_ns)[1]) / static_cast<double>((*medians_ns)[0]);
  RecordProperty("ratio", std::to_string(ratio));
  EXPECT_LE(ratio, 3.0) << (*medians_ns)[1] << " ns on a new group, " << (*medians_ns)[0]
                        << " ns on a used one";
}

TEST(ResourcesTest, IdleWorkersTakeNoProcessorTime) {
  WorkerProcesses workers(4, [&](Worker& worker) {
    std::vector<float> data(1000, 1);
    // Also right after an operation that nobody waited for.
    Handle handle = worker.world().Start({.collective = Collective::kAllReduce,
                                          .data = Array::Of(data.data(), data.size()),
                                          .op = ReduceOp::kMax});
    if (!handle.Wait().ok() || !worker.world().Barrier().ok()) return 1;
    rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    absl::SleepFor(absl::Seconds(2));
    getrusage(RUSAGE_SELF, &after);
    const double used_s = Seconds(after.ru_utime) + Seconds(after.ru_stime) -
                          Seconds(before.ru_utime) - Seconds(before.ru_stime);
    if (used_s > 0.02) {  // one percent of a core
      std::fprintf(stderr, "an idle worker took %.3f s of 2 s\n", used_s);
      return 2;
    }
    return worker.world().Barrier().ok() ? 0 : 3;
  });
  for (int code : workers.Join()) EXPECT_EQ(code, 0);
}

// Kilobytes of a line of /proc/self/status.
long StatusKb(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word != name + ":") continue;
    long kb = 0;
    status >> kb;
    return kb;
  }
  return -1;
}

TEST(ResourcesTest, MemoryIsTheArenaPlusLittle) {
  WorkerProcesses workers(4, [&](Worker& worker) {
    constexpr size_t kElements = 4 << 20;
    absl::StatusOr<Buffer> buffer = worker.Allocate(kElements * sizeof(float));
    if (!buffer.ok()) return 1;
    std::fill(buffer->as<float>(), buffer->as<float>() + kElements, 0.0f);
    for (const char* algorithm : {"", "ring", "double-tree", "halving-doubling"}) {
      if (!worker.world()
               .Run({.collective = Collective::kAllReduce,
                     .data = Array::Of(buffer->as<float>(), kElements),
                     .op = ReduceOp::kSum,
                     .algorithm = algorithm})
               .ok()) {
        return 2;
      }
    }
    const long private_kb = StatusKb("RssAnon");
    // All arenas are mapped; each is 64 MiB here, and the control memory comes on top.
    const long shared_kb = StatusKb("RssShmem");
    if (private_kb < 0 || private_kb > 64 * 1024 || shared_kb > 4 * (64 + 16) * 1024) {
      std::fprintf(stderr, "%ld KiB private, %ld KiB shared\n", private_kb, shared_kb);
      return 3;
    }
    return 0;
  });
  for (int code : workers.Join()) EXPECT_EQ(code, 0);
}

}  // namespace
}  // namespace syncopate
