// The process between the launcher and the ranks: starts them, passes their output on, ends them.
#ifndef SYNCOPATE_LAUNCH_LOCAL_SUPERVISOR_H_
#define SYNCOPATE_LAUNCH_LOCAL_SUPERVISOR_H_

#include <signal.h>

#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "control/launcher_notes.h"
#include "launch/job_supervisor.h"
#include "launch/launcher.h"
#include "launch/line_tagger.h"
#include "launch/output_queue.h"
#include "launch/rank_processes.h"

namespace syncopate::launch {

// Not thread-safe.
class LocalSupervisor final : public JobSupervisor {
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
  void ReadExecErrors();
  void ReadStream(Stream& stream);
  void CheckDeadlines();
  void PassOnTheRest();

  void AskToEnd(int signal) override;
  void KillAll() override { ranks_.Signal(SIGKILL); }
  void Reap() override;
  int RunningRanks() const override { return ranks_.Running(); }

  control::LauncherNotes notes_;
  RankProcesses ranks_;
  std::vector<Stream> streams_;
};

}  // namespace syncopate::launch

#endif  // SYNCOPATE_LAUNCH_LOCAL_SUPERVISOR_H_
