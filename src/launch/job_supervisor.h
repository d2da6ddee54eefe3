// What the supervisors of a whole job share, whether its ranks run here or on many hosts: the files
// that they wait for, how signals and the launcher's death end the job, and its one outcome.
//
// A supervisor runs in a process of its own that is a child subreaper and has kEndingSignals,
// SIGCHLD and SIGPIPE blocked. An ending job has these steps: End() fixes the outcome and asks
// everything that runs to end; after a grace, at `kill_at_ns_`, it is killed; what is not gone
// kKillNs later is left behind.
#ifndef SYNCOPATE_LAUNCH_JOB_SUPERVISOR_H_
#define SYNCOPATE_LAUNCH_JOB_SUPERVISOR_H_

#include <poll.h>
#include <signal.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "base/unique_fd.h"
#include "launch/launcher.h"
#include "launch/outcome.h"
#include "launch/output_queue.h"

namespace syncopate::launch {

// Not thread-safe.
class JobSupervisor {
 public:
  virtual ~JobSupervisor() = default;
  JobSupervisor(const JobSupervisor&) = delete;

 protected:
  // `launcher` is a pidfd of the launcher; `input` is for rank 0; `user_mask` for what is started.
  JobSupervisor(const LaunchOptions& options, const Clock& clock, UniqueFd launcher, UniqueFd input,
                const sigset_t& user_mask);

  // Asks everything that runs to end, and sets `kill_at_ns_`.
  virtual void AskToEnd(int signal) = 0;
  virtual void KillAll() = 0;
  virtual void Reap() = 0;
  virtual int RunningRanks() const = 0;

  // Fixes the outcome, if none is fixed yet, and asks everything to end.
  void End(Outcome outcome, int signal);
  // Kills at once, without what is left of the grace.
  void Kill();
  // An ending job has been killed, and the time that killed processes may take is over.
  bool PatienceIsOver() const;
  // When an ending job needs attention next.
  int64_t NextEndingNs() const;

  // Makes `polls_` new, with the files that every supervisor waits for; the caller adds its own.
  // Those are dealt with by the functions below, each in its turn: output comes first, so that a
  // rank's last words stand before what is said about its end.
  enum OwnPoll : size_t { kSignals, kLauncher, kExecErrors, kOut, kErr, kOwnPolls };
  void BeginPolls();
  bool Ready(size_t poll) const { return polls_[poll].revents != 0; }
  void WriteQueues();
  void ReadSignals();
  // The launcher has died: nobody wants the job any more.
  void LauncherGone();

  // Says `syncopate launch: line` on standard error.
  void Tell(absl::string_view line);
  // Says why the job failed, unless that was said when it happened; and nothing if it did not.
  void TellOutcome();
  // What `outcome` is for the user, in one line.
  std::string Explanation(const Outcome& outcome) const;

  // With --on-failure continue: `outcome` is that of a rank or host, and the others go on. Says so
  // at once.
  void GoOnWithout(const Outcome& outcome);
  // To be called when all have ended: the job is done if some ranks exited with 0, all others that
  // ended by themselves did so too, and the rest was lost.
  void JudgeSurvivors();

  const LaunchOptions& options_;
  const Clock& clock_;
  const UniqueFd launcher_;
  UniqueFd input_;
  const sigset_t user_mask_;

  UniqueFd signals_;
  UniqueFd exec_errors_;
  OutputQueue out_;
  OutputQueue err_;
  std::vector<pollfd> polls_;  // kept to save its memory

  Outcome outcome_;
  bool told_ = false;      // the outcome has been said
  int done_ranks_ = 0;     // ranks that exited with 0
  bool ending_ = false;    // the outcome is fixed
  bool draining_ = false;  // nobody writes any more: a stream without bytes is at its end
  int64_t timeout_at_ns_ = INT64_MAX;
  int64_t kill_at_ns_ = INT64_MAX;  // the grace is over
};

}  // namespace syncopate::launch

#endif  // SYNCOPATE_LAUNCH_JOB_SUPERVISOR_H_
