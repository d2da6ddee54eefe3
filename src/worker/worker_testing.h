// For tests: several workers of one job as threads of this process, so that the sanitizers see all
// of them.
#ifndef SYNCOPATE_WORKER_WORKER_TESTING_H_
#define SYNCOPATE_WORKER_WORKER_TESTING_H_

#include <unistd.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "syncopate/syncopate.h"

namespace syncopate::worker {

// Runs `body` as every worker of a new job at once.
inline void RunWorkers(int size, const std::function<void(Worker&)>& body, Options options = {}) {
  static std::atomic<int> jobs{0};
  const std::string job = "worker-test-" + std::to_string(getpid()) + "-" + std::to_string(++jobs);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      Options mine = options;
      mine.job = Job{job, rank, size, rank, size};
      if (!mine.arena_bytes) mine.arena_bytes = uint64_t{32} << 20;
      if (!mine.timeout) mine.timeout = absl::Seconds(60);
      absl::StatusOr<std::unique_ptr<Worker>> worker = Worker::Start(mine);
      ASSERT_TRUE(worker.ok()) << worker.status();
      body(**worker);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace syncopate::worker

#endif  // SYNCOPATE_WORKER_WORKER_TESTING_H_
