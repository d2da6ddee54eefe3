// For tests: the workers of one job, each a process on a host of its own in an emulated cluster.
#ifndef SYNCOPATE_TESTS_LAB_WORKERS_H_
#define SYNCOPATE_TESTS_LAB_WORKERS_H_

#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "lab/lab.h"
#include "syncopate/syncopate.h"

namespace syncopate {

class LabWorkers {
 public:
  // Forks a worker for each host, `slots` for each; each starts, runs `body` and ends with what
  // that returns. They meet as under torchrun.
  LabWorkers(const lab::Lab& lab, int slots, const std::function<int(Worker&)>& body) {
    static int jobs = 0;
    const std::vector<lab::HostAddress> hosts = lab.hosts();
    const int size = static_cast<int>(hosts.size()) * slots;
    const std::string port = std::to_string(20000 + (getpid() * 7 + ++jobs * 31) % 20000);
    for (int rank = 0; rank < size; ++rank) {
      const pid_t parent = getpid();
      const pid_t pid = fork();
      if (pid != 0) {
        pids_.push_back(pid);
        continue;
      }
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != parent) _exit(99);
      const lab::HostAddress& host = hosts[static_cast<size_t>(rank / slots)];
      const absl::Status placed = lab::BecomeHost(lab.name(), host.name);
      if (!placed.ok()) {
        std::fprintf(stderr, "rank %d: %s\n", rank, placed.ToString().c_str());
        _exit(97);
      }
      const auto set = [](const char* name, const std::string& value) {
        setenv(name, value.c_str(), 1);
      };
      set("RANK", std::to_string(rank));
      set("WORLD_SIZE", std::to_string(size));
      set("LOCAL_RANK", std::to_string(rank % slots));
      set("LOCAL_WORLD_SIZE", std::to_string(slots));
      set("MASTER_ADDR", hosts[0].address);
      set("MASTER_PORT", port);
      set("TORCHELASTIC_RUN_ID", "test-" + port);
      set("SYNCOPATE_HOSTNAME", host.name);
      set("SYNCOPATE_TIMEOUT", "30s");
      int code = 98;
      {
        Options options;
        options.arena_bytes = uint64_t{64} << 20;
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
  LabWorkers(const LabWorkers&) = delete;
  ~LabWorkers() {
    for (const pid_t pid : pids_) {
      if (pid <= 0) continue;
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
  }

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
  std::vector<pid_t> pids_;
};

}  // namespace syncopate

#endif  // SYNCOPATE_TESTS_LAB_WORKERS_H_
