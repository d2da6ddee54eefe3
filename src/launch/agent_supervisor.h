// The supervisor of a job's ranks on one of many hosts: does what the launcher says on its input,
// and says on its output what the ranks write and how they end.
#ifndef SYNCOPATE_LAUNCH_AGENT_SUPERVISOR_H_
#define SYNCOPATE_LAUNCH_AGENT_SUPERVISOR_H_

#include <poll.h>
#include <signal.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "control/launcher_notes.h"
#include "launch/agent_frames.h"
#include "launch/heartbeat.h"
#include "launch/output_queue.h"
#include "launch/rank_processes.h"

namespace syncopate::launch {

// Runs in a process as JobSupervisor does (launch/job_supervisor.h). Not thread-safe.
class AgentSupervisor {
 public:
  // `launcher` is a pidfd of the launcher on this host, `commands` what the far launcher sends.
  AgentSupervisor(const Clock& clock, UniqueFd launcher, UniqueFd commands,
                  const sigset_t& user_mask);

  // Runs until all ranks have ended, or the far launcher has gone. Returns 0 if the launcher was told
  // everything.
  int Run();

 private:
  struct Stream {
    UniqueFd fd;
    FrameKind kind;
    int rank;
  };

  void Step();
  int64_t NextDeadlineNs() const;
  void ReadCommands();
  void Obey(const Frame& frame);
  void StartRanks(const RemoteStart& start);
  void ReadSignals();
  void ReadExecErrors();
  void Reap();
  void ReadStream(Stream& stream);
  void WriteInput();
  void Say(FrameKind kind, int rank, absl::string_view bytes);
  void AskToEnd(int signal);
  // Nobody listens any more: everything is killed.
  void GiveUp();
  // Sends a sign of life. If none came for too long, the ranks are asked to end: the far launcher
  // may be there and cut off from here.
  void Beat();
  bool Over() const;

  const Clock& clock_;
  const UniqueFd launcher_;
  UniqueFd commands_;
  const sigset_t user_mask_;

  UniqueFd signals_;
  UniqueFd exec_errors_;
  FrameReader reader_;
  OutputQueue out_;
  Heartbeat heartbeat_;      // of the far launcher
  UniqueFd input_;           // of the first rank
  std::string input_bytes_;  // not taken yet
  bool input_ended_ = false;
  bool started_ = false;  // nothing more will be started
  bool gone_ = false;     // the far launcher has gone
  bool draining_ = false;
  int first_rank_ = 0;
  int64_t grace_ns_ = 0;
  int64_t kill_at_ns_ = INT64_MAX;
  control::LauncherNotes notes_;
  RankProcesses ranks_;
  std::vector<Stream> streams_;
  std::vector<pollfd> polls_;
};

}  // namespace syncopate::launch

#endif  // SYNCOPATE_LAUNCH_AGENT_SUPERVISOR_H_
