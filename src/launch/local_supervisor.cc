#include "launch/local_supervisor.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "launch/process_tree.h"
#include "launch/supervisor_waits.h"
#include "launch/worker_process.h"

namespace syncopate::launch {

LocalSupervisor::LocalSupervisor(const LaunchOptions& options, const Clock& clock,
                                 UniqueFd launcher, UniqueFd input, const sigset_t& user_mask)
    : JobSupervisor(options, clock, std::move(launcher), std::move(input), user_mask) {}

int LocalSupervisor::Run() {
  if (options_.timeout_ns.has_value()) timeout_at_ns_ = clock_.NowNs() + *options_.timeout_ns;
  signals_ = WatchSignals();
  StartRanks();
  while (ranks_.Running() > 0 && !PatienceIsOver()) {
    Step(ending_ ? NextEndingNs() : timeout_at_ns_);
    CheckDeadlines();
  }
  EndDescendants(clock_, clock_.NowNs() + kKillNs);
  PassOnTheRest();
  JudgeSurvivors();
  TellOutcome();
  PassOnTheRest();
  return ExitCode(outcome_);
}

void LocalSupervisor::StartRanks() {
  if (!signals_.ok()) {
    return End({.kind = Outcome::Kind::kCannotStart, .rank = 0, .number = errno}, SIGTERM);
  }
  const RanksStart start = {
      .command = options_.command,
      .environment = WithVariables(WithVariables(InheritedEnvironment(), options_.variables),
                                   notes_.Variables()),
      .job = options_.job,
      .first_rank = 0,
      .ranks = options_.ranks,
      .size = options_.ranks,
      .input = input_.get(),
      .signal_mask = user_mask_};
  const std::optional<ExecError> failed =
      ranks_.Start(start, exec_errors_, [this](int rank, WorkerProcess process) {
        const std::string tag = options_.tag ? absl::StrCat("[", rank, "] ") : "";
        streams_.push_back({std::move(process.out), LineTagger(tag), &out_});
        streams_.push_back({std::move(process.err), LineTagger(tag), &err_});
      });
  if (failed.has_value()) {
    End({.kind = Outcome::Kind::kCannotStart, .rank = failed->rank, .number = failed->error},
        SIGTERM);
  }
  input_.Reset();
}

void LocalSupervisor::Step(int64_t deadline_ns) {
  BeginPolls();
  bool may_read = false;
  for (const Stream& stream : streams_) {
    const bool read = stream.fd.ok() && !stream.queue->Full();
    may_read = may_read || read;
    polls_.push_back({read ? stream.fd.get() : -1, POLLIN, 0});
  }
  const int timeout_ms = draining_ && may_read ? 0 : PollTimeoutMs(clock_, deadline_ns);
  if (poll(polls_.data(), polls_.size(), timeout_ms) < 0) return;  // EINTR: the caller asks again

  for (size_t i = 0; i < streams_.size(); ++i) {
    const pollfd& ready = polls_[kOwnPolls + i];
    if (ready.fd >= 0 && (ready.revents != 0 || draining_)) ReadStream(streams_[i]);
  }
  WriteQueues();
  if (Ready(kExecErrors)) ReadExecErrors();
  if (Ready(kSignals)) ReadSignals();
  if (Ready(kLauncher)) LauncherGone();
}

void LocalSupervisor::ReadExecErrors() {
  if (const std::optional<ExecError> report = TakeExecError(exec_errors_)) {
    End({.kind = Outcome::Kind::kCannotRun, .rank = report->rank, .number = report->error},
        SIGTERM);
  }
}

void LocalSupervisor::ReadStream(Stream& stream) {
  char buffer[16 << 10];
  const ssize_t count = read(stream.fd.get(), buffer, sizeof(buffer));
  if (count > 0) {
    stream.tagger.Add(absl::string_view(buffer, static_cast<size_t>(count)), stream.queue->bytes());
    return;
  }
  const bool nothing_yet = count < 0 && (errno == EAGAIN || errno == EINTR);
  if (nothing_yet && !draining_) return;
  stream.tagger.Finish(stream.queue->bytes());
  stream.fd.Reset();
}

void LocalSupervisor::Reap() {
  std::optional<Outcome> first;
  ranks_.Reap([&](int rank, int wait_status) {
    Outcome outcome = OutcomeOf(rank, wait_status);
    if (outcome.kind == Outcome::Kind::kDone) {
      ++done_ranks_;
      return;
    }
    ReadExecErrors();  // that tells more than its exit code
    outcome.detail = notes_.WhyEnded(ranks_.pid(rank));
    if (!options_.end_on_failure && !ending_) return GoOnWithout(outcome);
    // Of several that ended meanwhile the killed one is the cause, not those that noticed it.
    if (!first.has_value() ||
        (first->kind == Outcome::Kind::kExited && outcome.kind == Outcome::Kind::kKilled)) {
      first = outcome;
    }
  });
  if (first.has_value()) End(*first, SIGTERM);
}

void LocalSupervisor::CheckDeadlines() {
  const int64_t now_ns = clock_.NowNs();
  if (!ending_ && now_ns >= timeout_at_ns_) End({.kind = Outcome::Kind::kTimedOut}, SIGTERM);
  if (ending_ && now_ns >= kill_at_ns_) ranks_.Signal(SIGKILL);
}

void LocalSupervisor::AskToEnd(int signal) {
  kill_at_ns_ = clock_.NowNs() + options_.grace_ns;
  ranks_.Signal(signal);
  ranks_.Signal(SIGCONT);  // a stopped process would not hear of it
}

// A slow reader gets all output of a job that ended well, however long it takes (the user can
// interrupt us). After a failure it has kFlushNs.
void LocalSupervisor::PassOnTheRest() {
  draining_ = true;
  const auto anything_left = [this] {
    return !out_.Empty() || !err_.Empty() ||
           std::any_of(streams_.begin(), streams_.end(), [](const Stream& s) { return s.fd.ok(); });
  };
  const int64_t give_up_at_ns = clock_.NowNs() + kFlushNs;
  while (anything_left() && outcome_.kind != Outcome::Kind::kLauncherGone) {
    if (ending_ && clock_.NowNs() >= give_up_at_ns) return;
    Step(ending_ ? give_up_at_ns : timeout_at_ns_);
    CheckDeadlines();
  }
}

}  // namespace syncopate::launch
