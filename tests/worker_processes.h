// For tests: several workers of one job, each a process of its own, with a deadline on all of it.
#ifndef SYNCOPATE_TESTS_WORKER_PROCESSES_H_
#define SYNCOPATE_TESTS_WORKER_PROCESSES_H_

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "syncopate/syncopate.h"

namespace syncopate {

// A `T` that all processes share which are forked after it was made.
template <typename T>
class Shared {
 public:
  Shared() {
    void* memory =
        mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    value_ = new (memory) T();
  }
  ~Shared() { munmap(value_, sizeof(T)); }
  Shared(const Shared&) = delete;
  T* operator->() { return value_; }
  T& operator*() { return *value_; }

 private:
  T* value_;
};

class WorkerProcesses {
 public:
  // Forks `size` workers of a new job; each starts, runs `body` and ends with what that returns.
  WorkerProcesses(int size, const std::function<int(Worker&)>& body, Options options = {}) {
    static int jobs = 0;
    job_ = "test-" + std::to_string(getpid()) + "-" + std::to_string(++jobs);
    for (int rank = 0; rank < size; ++rank) {
      const pid_t parent = getpid();
      const pid_t pid = fork();
      if (pid != 0) {
        pids_.push_back(pid);
        continue;
      }
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != parent) _exit(99);
      options.job = Job{job_, rank, size, rank, size};
      if (!options.arena_bytes) options.arena_bytes = uint64_t{64} << 20;
      int code = 98;
      {
        absl::StatusOr<std::unique_ptr<Worker>> worker = Worker::Start(options);
        if (worker.ok()) {
          code = body(**worker);
        } else {
          std::fprintf(stderr, "rank %d: %s\n", rank, worker.status().ToString().c_str());
        }
      }
      std::fflush(nullptr);
      _exit(code);
    }
  }
  WorkerProcesses(const WorkerProcesses&) = delete;
  ~WorkerProcesses() {
    for (pid_t pid : pids_) {
      if (pid > 0) {
        kill(pid, SIGKILL);
        waitpid(pid, nullptr, 0);
      }
    }
  }

  const std::string& job() const { return job_; }
  void Signal(int rank, int signal) { kill(pids_[static_cast<size_t>(rank)], signal); }

  // The wait status of every worker; -1 for one that did not end within `limit`.
  std::vector<int> Join(absl::Duration limit = absl::Seconds(60)) {
    std::vector<int> codes(pids_.size(), -1);
    const absl::Time until = absl::Now() + limit;
    size_t left = pids_.size();
    while (left > 0 && absl::Now() < until) {
      for (size_t i = 0; i < pids_.size(); ++i) {
        int status = 0;
        if (pids_[i] > 0 && waitpid(pids_[i], &status, WNOHANG) == pids_[i]) {
          codes[i] = status;
          pids_[i] = -1;
          --left;
        }
      }
      usleep(1000);
    }
    return codes;
  }

 private:
  std::string job_;
  std::vector<pid_t> pids_;
};

}  // namespace syncopate

#endif  // SYNCOPATE_TESTS_WORKER_PROCESSES_H_
