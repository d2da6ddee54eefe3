// The processes of the ranks that a supervisor has started on this host.
#ifndef SYNCOPATE_LAUNCH_RANK_PROCESSES_H_
#define SYNCOPATE_LAUNCH_RANK_PROCESSES_H_

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <vector>

namespace syncopate::launch {

// Numbers the processes from 0 in the order in which they were added. Each is the first of its
// process group (StartWorker()). Not thread-safe.
class RankProcesses {
 public:
  void Add(pid_t pid) { ranks_.push_back({.pid = pid, .running = true}); }
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
