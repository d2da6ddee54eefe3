#include "launch/job_supervisor.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "launch/supervisor_waits.h"

namespace syncopate::launch {

JobSupervisor::JobSupervisor(const LaunchOptions& options, const Clock& clock, UniqueFd launcher,
                             UniqueFd input, const sigset_t& user_mask)
    : options_(options),
      clock_(clock),
      launcher_(std::move(launcher)),
      input_(std::move(input)),
      user_mask_(user_mask),
      out_(STDOUT_FILENO),
      err_(STDERR_FILENO) {}

void JobSupervisor::End(Outcome outcome, int signal) {
  if (ending_) return;
  ending_ = true;
  outcome.others_ended = RunningRanks();
  outcome_ = std::move(outcome);
  told_ = false;
  AskToEnd(signal);
}

void JobSupervisor::Kill() {
  kill_at_ns_ = std::min(kill_at_ns_, clock_.NowNs());
  KillAll();
}

bool JobSupervisor::PatienceIsOver() const {
  return kill_at_ns_ != INT64_MAX && clock_.NowNs() >= kill_at_ns_ + kKillNs;
}

int64_t JobSupervisor::NextEndingNs() const {
  return clock_.NowNs() < kill_at_ns_ ? kill_at_ns_ : kill_at_ns_ + kKillNs;
}

void JobSupervisor::BeginPolls() {
  polls_.clear();
  polls_.push_back({signals_.get(), POLLIN, 0});
  polls_.push_back({launcher_.get(), POLLIN, 0});
  polls_.push_back({exec_errors_.get(), POLLIN, 0});
  for (const OutputQueue* queue : {&out_, &err_}) {
    polls_.push_back({queue->Empty() ? -1 : queue->fd(), POLLOUT, 0});
  }
}

void JobSupervisor::WriteQueues() {
  const int error = out_.Write();
  if (error != 0) End({.kind = Outcome::Kind::kOutputBroken, .number = error}, SIGTERM);
  // Without standard error there is nobody to tell, but the job can go on.
  err_.Write();
}

void JobSupervisor::ReadSignals() {
  const bool children = TakeSignals(signals_, [this](int signal) {
    if (ending_) {
      Kill();  // asked twice: no more patience
    } else {
      End({.kind = Outcome::Kind::kInterrupted, .number = signal}, signal);
    }
  });
  if (children) Reap();
}

void JobSupervisor::LauncherGone() {
  if (outcome_.kind == Outcome::Kind::kLauncherGone) return;
  outcome_ = {.kind = Outcome::Kind::kLauncherGone};
  ending_ = true;
  Kill();
}

std::string JobSupervisor::Explanation(const Outcome& outcome) const {
  return Explain(outcome, options_.ranks, options_.command.front(), options_.timeout_text);
}

void JobSupervisor::Tell(absl::string_view line) {
  absl::StrAppend(&err_.bytes(), "syncopate ", options_.name, ": ", line, "\n");
}

void JobSupervisor::TellOutcome() {
  const std::string line = told_ ? "" : Explanation(outcome_);
  if (!line.empty()) Tell(line);
  told_ = true;
}

void JobSupervisor::GoOnWithout(const Outcome& outcome) {
  const int others = RunningRanks();
  std::string line = Explanation(outcome);
  if (others == 1) line += "; the other goes on";
  if (others > 1) absl::StrAppend(&line, "; the other ", others, " go on");
  Tell(line);
  // What ranks say of themselves tells more about the job than that some were lost.
  if (outcome_.kind != Outcome::Kind::kDone && (!outcome_.lost || outcome.lost)) return;
  outcome_ = outcome;
  told_ = true;
}

void JobSupervisor::JudgeSurvivors() {
  if (!ending_ && outcome_.lost && done_ranks_ > 0) outcome_ = {};
}

}  // namespace syncopate::launch
