#include "launch/rank_processes.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace syncopate::launch {

std::optional<ExecError> RankProcesses::Start(
    const RanksStart& start, UniqueFd& exec_errors,
    const std::function<void(int rank, WorkerProcess process)>& started) {
  int ends[2] = {-1, -1};
  int error = pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0 ? 0 : errno;
  exec_errors = UniqueFd(ends[0]);
  const UniqueFd exec_errors_write(ends[1]);
  const UniqueFd nothing(open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!nothing.ok()) error = errno;
  for (int local = 0; local < start.ranks; ++local) {
    const int rank = start.first_rank + local;
    WorkerProcess process;
    if (error == 0) {
      error =
          StartWorker({.rank = rank,
                       .command = start.command,
                       .environment = WorkerEnvironment(
                           start.environment, {start.job, rank, start.size, local, start.ranks}),
                       .input = rank == 0 ? start.input : nothing.get(),
                       .exec_errors = exec_errors_write.get(),
                       .signal_mask = start.signal_mask},
                      process);
    }
    if (error != 0) return ExecError{.rank = rank, .error = error};
    ranks_.push_back({.pid = process.pid, .running = true});
    started(rank, std::move(process));
  }
  return std::nullopt;
}

int RankProcesses::Running() const {
  return static_cast<int>(
      std::count_if(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.running; }));
}

void RankProcesses::Signal(int signal) const {
  for (const Rank& rank : ranks_) {
    if (rank.running) kill(-rank.pid, signal);  // not reaped yet, so the number is still its own
  }
}

void RankProcesses::Reap(const std::function<void(int number, int wait_status)>& ended) {
  int status = 0;
  for (pid_t pid = waitpid(-1, &status, WNOHANG); pid > 0; pid = waitpid(-1, &status, WNOHANG)) {
    const auto rank = std::find_if(ranks_.begin(), ranks_.end(),
                                   [&](const Rank& r) { return r.running && r.pid == pid; });
    if (rank == ranks_.end()) continue;
    rank->running = false;
    ended(static_cast<int>(rank - ranks_.begin()), status);
  }
}

}  // namespace syncopate::launch
