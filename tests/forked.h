// For tests: processes that are forked from the test and run a function of it, and memory that they
// share. None of them outlives the test, and every wait for them has a deadline.
#ifndef SYNCOPATE_TESTS_FORKED_H_
#define SYNCOPATE_TESTS_FORKED_H_

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <new>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"

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

// Processes, numbered from 0 in the order in which they were forked.
class Forked {
 public:
  Forked() = default;
  Forked(const Forked&) = delete;
  ~Forked() {
    for (const pid_t pid : pids_) {
      if (pid <= 0) continue;
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
  }

  // Forks one that runs `body` and ends with the exit code that `body` returns.
  void Fork(const std::function<int()>& body) {
    const pid_t parent = getpid();
    const pid_t pid = fork();
    if (pid != 0) {
      pids_.push_back(pid);
      return;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(99);
    const int code = body();
    std::fflush(nullptr);
    _exit(code);
  }

  const std::vector<pid_t>& pids() const { return pids_; }  // -1 for those that Join() saw end
  void Signal(int number, int signal) { kill(pids_[static_cast<size_t>(number)], signal); }
  bool AnyHasEnded() const {
    return std::any_of(pids_.begin(), pids_.end(), [](pid_t pid) {
      siginfo_t info = {};
      waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT);
      return info.si_pid != 0;
    });
  }

  // The wait status of every process; -1 for one that did not end within `limit`.
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
  std::vector<pid_t> pids_;
};

}  // namespace syncopate

#endif  // SYNCOPATE_TESTS_FORKED_H_
