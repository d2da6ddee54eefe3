// The process between the launcher and the ranks: starts them, passes their output on, ends them.
#ifndef SYNCOPATE_LAUNCH_LOCAL_SUPERVISOR_H_
#define SYNCOPATE_LAUNCH_LOCAL_SUPERVISOR_H_

#include <poll.h>
#include <signal.h>

#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "launch/launcher.h"
#include "launch/line_tagger.h"
#include "launch/outcome.h"
#include "launch/output_queue.h"
#include "launch/rank_processes.h"
#include "launch/supervisor_waits.h"
#include "launch/worker_process.h"

namespace syncopate::launch {

// How long killed processes may take to go (they can be stuck in the kernel), and how long the
// reader of our output may block us once the job has failed.
inline constexpr int64_t kKillNs = 5'000'000'000;
inline constexpr int64_t kFlushNs = 5'000'000'000;

// Runs in a process of its own that is a child subreaper and has kEndingSignals, SIGCHLD and
// SIGPIPE blocked. Not thread-safe.
class LocalSupervisor {
 public:
  // `launcher` is a pidfd of the launcher; `input` is for rank 0; `user_mask` for all ranks.
  LocalSupervisor(const LaunchOptions& options, const Clock& clock, UniqueFd launcher,
                  UniqueFd input, const sigset_t& user_mask);

  // Runs the job to its end and returns the exit code.
  int Run();

 private:
  // One of the two outputs of a rank.
  struct Stream {
    UniqueFd fd;
    LineTagger tagger;
    OutputQueue* queue;
  };

  void StartRanks();
  // Waits for something to happen, at most until `deadline_ns`, and deals with it.
  void Step(int64_t deadline_ns);
  int64_t NextDeadlineNs() const;
  void ReadSignals();
  void ReadExecErrors();
  void ReadStream(Stream& stream);
  void WriteQueue(OutputQueue& queue);
  void Reap();
  void CheckDeadlines();
  // Fixes the outcome, if none is fixed yet, and asks the ranks to end.
  void End(Outcome outcome, int signal);
  void KillRanks();
  void PassOnTheRest();

  const LaunchOptions& options_;
  const Clock& clock_;
  const UniqueFd launcher_;
  UniqueFd input_;
  const sigset_t user_mask_;

  UniqueFd signals_;
  UniqueFd exec_errors_;
  OutputQueue out_;
  OutputQueue err_;
  RankProcesses ranks_;
  std::vector<Stream> streams_;
  std::vector<pollfd> polls_;  // kept to save its memory

  Outcome outcome_;
  bool ending_ = false;    // the outcome is fixed
  bool draining_ = false;  // nobody writes any more: a stream without bytes is at its end
  int64_t timeout_at_ns_ = INT64_MAX;
  int64_t kill_at_ns_ = INT64_MAX;  // the grace is over
};

}  // namespace syncopate::launch

#endif  // SYNCOPATE_LAUNCH_LOCAL_SUPERVISOR_H_
