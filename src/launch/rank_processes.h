// The processes of the ranks that a supervisor has started on this host.
#ifndef SYNCOPATE_LAUNCH_RANK_PROCESSES_H_
#define SYNCOPATE_LAUNCH_RANK_PROCESSES_H_

#include <signal.h>
#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "launch/worker_process.h"

namespace syncopate::launch {

struct RanksStart {
  std::vector<std::string> command;
  std::vector<std::string> environment;  // of all of them
  std::string job;
  int first_rank = 0;
  int ranks = 1;   // on this host
  int size = 1;    // of the job
  int input = -1;  // of rank 0; the others read nothing
  sigset_t signal_mask = {};
};

// Numbers the processes from 0 in the order in which they were added. Each is the first of its
// process group (StartWorker()). Not thread-safe.
class RankProcesses {
 public:
  // Starts the ranks one after the other and calls `started` for each. `exec_errors` becomes the file
  // that TakeExecError() reads. If one cannot be started, those before it run, and its rank and errno
  // are returned.
  std::optional<ExecError> Start(
      const RanksStart& start, UniqueFd& exec_errors,
      const std::function<void(int rank, WorkerProcess process)>& started);
  int Running() const;
  pid_t pid(int number) const { return ranks_[static_cast<size_t>(number)].pid; }
  // Sends a signal to the process groups of all ranks that still run.
  void Signal(int signal) const;
  // Reaps all children of this process that have ended, and calls `ended` for those that were ranks.
  // Others are orphans that a rank has left.
  void Reap(const std::function<void(int number, int wait_status)>& ended);

 private:
  struct Rank {
    pid_t pid = -1;
    bool running = false;
  };
  std::vector<Rank> ranks_;
};

}  // namespace syncopate::launch

#endif  // SYNCOPATE_LAUNCH_RANK_PROCESSES_H_
