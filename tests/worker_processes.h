// For tests: several workers of one job on this host, each a process of its own.
#ifndef SYNCOPATE_TESTS_WORKER_PROCESSES_H_
#define SYNCOPATE_TESTS_WORKER_PROCESSES_H_

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>

#include "syncopate/syncopate.h"
#include "tests/forked.h"

namespace syncopate {

// Starts a worker in this process and runs `body` as it. Returns what that returned; 98 if there
// was no worker.
inline int RunAsWorker(Options options, const std::function<int(Worker&)>& body) {
  if (!options.arena_bytes) options.arena_bytes = uint64_t{64} << 20;
  absl::StatusOr<std::unique_ptr<Worker>> worker = Worker::Start(options);
  if (worker.ok()) return body(**worker);
  std::fprintf(stderr, "process %d: %s\n", static_cast<int>(getpid()),
               worker.status().ToString().c_str());
  return 98;
}

class WorkerProcesses : public Forked {
 public:
  // Forks `size` workers of a new job; each starts, runs `body` and ends with what that returns.
  WorkerProcesses(int size, const std::function<int(Worker&)>& body, Options options = {}) {
    static int jobs = 0;
    job_ = "test-" + std::to_string(getpid()) + "-" + std::to_string(++jobs);
    for (int rank = 0; rank < size; ++rank) {
      options.job = Job{job_, rank, size, rank, size};
      Fork([&] { return RunAsWorker(options, body); });
    }
  }

  const std::string& job() const { return job_; }

 private:
  std::string job_;
};

}  // namespace syncopate

#endif  // SYNCOPATE_TESTS_WORKER_PROCESSES_H_
