// One rank of a launched job: its environment, its process and the pipes to it.
#ifndef SYNCOPATE_LAUNCH_WORKER_PROCESS_H_
#define SYNCOPATE_LAUNCH_WORKER_PROCESS_H_

#include <signal.h>
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/unique_fd.h"

namespace syncopate::launch {

// The place of a rank in its job.
struct WorkerIdentity {
  std::string job;
  int rank = 0;
  int size = 1;
  int local_rank = 0;
  int local_size = 1;
};

// This process's own variables, "NAME=value" each.
std::vector<std::string> InheritedEnvironment();

// `inherited` with the variables of docs/launch.md for this rank. Those that torchrun uses as well
// are added only if the user has set none of them, and so is how OpenMP's threads wait.
std::vector<std::string> WorkerEnvironment(const std::vector<std::string>& inherited,
                                           const WorkerIdentity& worker);

// `environment` with those of `extra`, which win.
std::vector<std::string> WithVariables(const std::vector<std::string>& environment,
                                       const std::vector<std::string>& extra);

struct WorkerProcess {
  pid_t pid = -1;  // also the number of its process group
  UniqueFd out;    // what it writes, not blocking
  UniqueFd err;
};

// What a worker writes to `exec_errors` if it cannot become the program.
struct ExecError {
  int rank;
  int error;
};

// The next such report that has come, if any. Closes `exec_errors`, which does not block, once every
// worker has become its program.
std::optional<ExecError> TakeExecError(UniqueFd& exec_errors);

struct WorkerStart {
  int rank = 0;
  std::vector<std::string> command;
  std::vector<std::string> environment;
  int input = -1;             // its standard input
  int exec_errors = -1;       // a pipe, closed on exec
  sigset_t signal_mask = {};  // as the user's shell gave it to the launcher
};

// Puts the process in a group of its own; it dies with its parent, even if that is killed. Returns
// 0 or an errno.
int StartWorker(const WorkerStart& start, WorkerProcess& worker);

}  // namespace syncopate::launch

#endif  // SYNCOPATE_LAUNCH_WORKER_PROCESS_H_
