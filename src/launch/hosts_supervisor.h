// The supervisor of a job on many hosts: one agent for each host, a rendezvous for the workers, and
// from all of them one output and one outcome.
#ifndef SYNCOPATE_LAUNCH_HOSTS_SUPERVISOR_H_
#define SYNCOPATE_LAUNCH_HOSTS_SUPERVISOR_H_

#include <signal.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "base/wait_notice.h"
#include "launch/agent_link.h"
#include "launch/job_rendezvous.h"
#include "launch/job_supervisor.h"
#include "launch/launcher.h"
#include "launch/line_tagger.h"
#include "launch/outcome.h"

namespace syncopate::launch {

// Not thread-safe.
class HostsSupervisor final : public JobSupervisor {
 public:
  // `launcher` is a pidfd of the launcher; `input` is for rank 0; `user_mask` for the agents.
  HostsSupervisor(const LaunchOptions& options, const Clock& clock, UniqueFd launcher,
                  UniqueFd input, const sigset_t& user_mask);

  // Runs the job to its end and returns the exit code.
  int Run();

 private:
  struct Rank {
    AgentLink* agent = nullptr;
    bool ended = false;
    LineTagger out = LineTagger("");
    LineTagger err = LineTagger("");
    Tail tail = {};
    std::string why_ended = {};  // as its host said, if it did
  };
  // Returns an outcome only if the job cannot begin.
  std::optional<Outcome> StartAgents();
  void SendStarts();

  void Step();
  int64_t NextDeadlineNs() const;
  void CheckDeadlines();
  void ReadExecErrors();
  void ReadAgent(AgentLink& agent, bool out_ready, bool err_ready);
  void Hear(AgentLink& agent, const Frame& frame);
  void ReadInput();
  void ReadNews();
  void JudgeAgent(AgentLink& agent);
  // Sends a sign of life to the host, and judges by those that came from it.
  void Beat(AgentLink& agent);
  // A rank or a host failed. That is the outcome, unless it turns out within kSettleNs to be the
  // consequence of something else.
  void Fail(Outcome outcome, std::string last_words);
  void FailHost(const AgentLink& agent, std::string detail);
  void FailRank(Outcome outcome);
  void NameMissing();
  void TellWaitingForHosts();
  std::string WaitText(int wait_status) const;
  bool AgentsRun() const;
  void PassOnTheRest();
  void TellLastWords(const std::string& words);

  void AskToEnd(int signal) override;
  void KillAll() override;
  void Reap() override;
  int RunningRanks() const override;

  std::vector<std::unique_ptr<AgentLink>> agents_;
  std::vector<Rank> ranks_;
  std::unique_ptr<JobRendezvous> rendezvous_;

  size_t input_unread_ = 0;           // sent to rank 0's host and not taken yet
  std::string last_words_;            // the output that explains the outcome
  bool failed_ = false;               // the outcome is one of the job's own
  int64_t settle_at_ns_ = INT64_MAX;  // when the failure that was seen counts
  int64_t start_by_ns_ = INT64_MAX;   // when all agents must have started their ranks
  WaitNotice start_notice_;           // until then
  int64_t meet_by_ns_ = INT64_MAX;    // when all ranks must have come to the rendezvous
};

}  // namespace syncopate::launch

#endif  // SYNCOPATE_LAUNCH_HOSTS_SUPERVISOR_H_
