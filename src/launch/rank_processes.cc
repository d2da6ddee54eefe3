#include "launch/rank_processes.h"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>

namespace syncopate::launch {

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
