#include "launch/hosts_supervisor.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/own_path.h"
#include "base/parse.h"
#include "launch/agent_command.h"
#include "launch/process_tree.h"
#include "launch/supervisor_waits.h"

namespace syncopate::launch {
namespace {

// How long a failure may turn out to be the consequence of another one: workers that lost a peer may
// exit before the host of that peer tells of it.
constexpr int64_t kSettleNs = 200'000'000;
// What is added to the grace of the ranks for the way to their host and back.
constexpr int64_t kAgentEndNs = 3'000'000'000;

int NumberIn(const std::string& text) {
  return static_cast<int>(ParseInt(text, INT32_MIN, INT32_MAX).value_or(-1));
}

}  // namespace

HostsSupervisor::HostsSupervisor(const LaunchOptions& options, const Clock& clock,
                                 UniqueFd launcher, UniqueFd input, const sigset_t& user_mask)
    : JobSupervisor(options, clock, std::move(launcher), std::move(input), user_mask),
      start_notice_(clock.NowNs()) {}

int HostsSupervisor::Run() {
  const int64_t now_ns = clock_.NowNs();
  start_by_ns_ = now_ns + options_.start_timeout_ns;
  if (options_.timeout_ns.has_value()) timeout_at_ns_ = now_ns + *options_.timeout_ns;
  signals_ = WatchSignals();
  std::optional<Outcome> cannot = StartAgents();
  if (!cannot.has_value()) {
    // After the agents: it has threads, and processes with threads must not fork.
    auto rendezvous = JobRendezvous::Start(options_, clock_);
    if (rendezvous.ok()) {
      rendezvous_ = *std::move(rendezvous);
    } else {
      cannot = Outcome{.kind = Outcome::Kind::kNoRendezvous};
      cannot->detail = std::string(rendezvous.status().message());
    }
  }
  if (cannot.has_value()) {
    End(*cannot, SIGTERM);
  } else {
    SendStarts();
  }
  while (AgentsRun() && !PatienceIsOver()) {
    Step();
    CheckDeadlines();
  }
  EndDescendants(clock_, clock_.NowNs() + kKillNs);
  PassOnTheRest();
  rendezvous_.reset();
  JudgeSurvivors();
  TellOutcome();
  TellLastWords(last_words_);
  PassOnTheRest();
  return ExitCode(outcome_);
}

std::optional<Outcome> HostsSupervisor::StartAgents() {
  int exec_ends[2] = {-1, -1};
  if (!signals_.ok() || pipe2(exec_ends, O_CLOEXEC | O_NONBLOCK) != 0) {
    return Outcome{.kind = Outcome::Kind::kCannotStart, .rank = 0, .number = errno};
  }
  exec_errors_ = UniqueFd(exec_ends[0]);
  const UniqueFd exec_errors_write(exec_ends[1]);
  const std::string own_name = OwnHostName(), own_program = OwnPath().value_or("syncopate");
  for (const HostRanks& place : options_.hosts) {
    const bool here = options_.agent.empty() && IsThisHost(place.host, own_name);
    const std::string program =
        options_.remote_program.empty() || here ? own_program : options_.remote_program;
    auto command = AgentCommand(options_.agent, place.host, here, {program, "launch", "--remote"},
                                options_.host_timeout_ns);
    int input_ends[2] = {-1, -1};
    int error = command.ok() && pipe2(input_ends, O_CLOEXEC) == 0 ? 0 : errno;
    const UniqueFd input_read(input_ends[0]);
    UniqueFd input_write(input_ends[1]);
    WorkerProcess process;
    if (error == 0) {
      fcntl(input_write.get(), F_SETFL, O_NONBLOCK);
      error = StartWorker({.rank = static_cast<int>(agents_.size()),
                           .command = *command,
                           .environment = InheritedEnvironment(),
                           .input = input_read.get(),
                           .exec_errors = exec_errors_write.get(),
                           .signal_mask = user_mask_},
                          process);
    }
    if (error != 0) {
      Outcome outcome = {
          .kind = Outcome::Kind::kCannotStart, .rank = place.first_rank, .number = error};
      outcome.host = place.host;
      return outcome;
    }
    agents_.push_back(
        std::make_unique<AgentLink>(place, std::move(process), std::move(input_write),
                                    Heartbeat(options_.host_timeout_ns, clock_.NowNs())));
    for (int rank = place.first_rank; rank < place.first_rank + place.ranks; ++rank) {
      const std::string tag = options_.tag ? absl::StrCat("[", rank, "] ") : "";
      ranks_.push_back(
          {.agent = agents_.back().get(), .out = LineTagger(tag), .err = LineTagger(tag)});
    }
  }
  return std::nullopt;
}

void HostsSupervisor::SendStarts() {
  char folder[4096] = "";
  if (getcwd(folder, sizeof(folder)) == nullptr) std::strcpy(folder, "/");
  for (const auto& agent : agents_) {
    RemoteStart start = {.job = options_.job,
                         .size = options_.ranks,
                         .first_rank = agent->place().first_rank,
                         .ranks = agent->place().ranks,
                         .grace_ns = options_.grace_ns,
                         .host_timeout_ns = options_.host_timeout_ns,
                         .folder = folder,
                         .command = options_.command,
                         .environment = {}};
    // Those of the job, and not what the caller may have from another one.
    std::vector<std::string> variables = rendezvous_->Variables();
    variables.push_back(absl::StrCat("SYNCOPATE_HOST=", agent->place().host));
    start.environment = WithVariables(options_.variables, variables);
    agent->Send(FrameKind::kStart, 0, EncodeStart(start));
  }
}

int64_t HostsSupervisor::NextDeadlineNs() const {
  int64_t beat_ns = INT64_MAX;
  for (const auto& agent : agents_) {
    if (agent->running && !agent->judged) beat_ns = std::min(beat_ns, agent->heartbeat.NextNs());
  }
  if (ending_) return std::min(NextEndingNs(), beat_ns);
  const int64_t notice_ns = start_by_ns_ == INT64_MAX ? INT64_MAX : start_notice_.next_ns();
  return std::min({settle_at_ns_, start_by_ns_, meet_by_ns_, timeout_at_ns_, notice_ns, beat_ns});
}

void HostsSupervisor::Step() {
  const bool may_input = input_.ok() && !ranks_.empty() && ranks_[0].agent->started &&
                         input_unread_ < kInputWindowBytes && !draining_;
  BeginPolls();
  constexpr size_t kNews = kOwnPolls, kInput = kOwnPolls + 1;
  polls_.push_back({rendezvous_ == nullptr ? -1 : rendezvous_->news_fd(), POLLIN, 0});
  polls_.push_back({may_input ? input_.get() : -1, POLLIN, 0});
  const size_t own = polls_.size();
  const bool room = !out_.Full() && !err_.Full();
  bool may_read = false;
  for (const auto& agent : agents_) {
    polls_.push_back({room ? agent->out() : -1, POLLIN, 0});
    polls_.push_back({room ? agent->err() : -1, POLLIN, 0});
    polls_.push_back(
        {agent->running && !agent->to_agent().Empty() ? agent->to_agent().fd() : -1, POLLOUT, 0});
    may_read = may_read || (room && (agent->out() >= 0 || agent->err() >= 0));
  }
  const int timeout_ms = draining_ && may_read ? 0 : PollTimeoutMs(clock_, NextDeadlineNs());
  if (poll(polls_.data(), polls_.size(), timeout_ms) < 0) return;

  for (size_t i = 0; i < agents_.size(); ++i) {
    const pollfd* ready = &polls_[own + 3 * i];
    ReadAgent(*agents_[i], ready[0].fd >= 0 && (ready[0].revents != 0 || draining_),
              ready[1].fd >= 0 && (ready[1].revents != 0 || draining_));
    if (ready[2].revents != 0) agents_[i]->to_agent().Write();
    // What we do not read, because nobody reads our own output, is no silence.
    if (!room || !agents_[i]->started) agents_[i]->heartbeat.Heard(clock_.NowNs());
    Beat(*agents_[i]);
  }
  WriteQueues();
  if (Ready(kExecErrors)) ReadExecErrors();
  if (Ready(kNews)) ReadNews();
  if (Ready(kInput)) ReadInput();
  if (Ready(kSignals)) ReadSignals();
  for (const auto& agent : agents_) JudgeAgent(*agent);
  if (Ready(kLauncher)) LauncherGone();
}

void HostsSupervisor::ReadExecErrors() {
  const std::optional<ExecError> report = TakeExecError(exec_errors_);
  if (!report.has_value()) return;
  AgentLink& agent = *agents_[static_cast<size_t>(report->rank)];
  agent.judged = true;
  FailHost(agent, absl::StrCat("cannot be reached: the agent's program cannot be run: ",
                               std::strerror(report->error),
                               "; install ssh, or say how to reach it with --agent"));
}

void HostsSupervisor::ReadAgent(AgentLink& agent, bool out_ready, bool err_ready) {
  if (err_ready) agent.ReadErr(draining_ || !agent.running, err_.bytes());
  if (!out_ready) return;
  agent.heartbeat.Heard(clock_.NowNs());
  auto frames = agent.ReadOut(draining_ || !agent.running);
  if (frames.ok()) {
    for (const Frame& frame : *frames) Hear(agent, frame);
    return;
  }
  agent.judged = true;
  kill(-agent.pid(), SIGKILL);
  FailHost(agent, absl::StrCat("cannot be understood: ", frames.status().message()));
}

void HostsSupervisor::Hear(AgentLink& agent, const Frame& frame) {
  Rank& rank = ranks_[static_cast<size_t>(std::min<int>(frame.rank, options_.ranks - 1))];
  Outcome outcome;
  switch (frame.kind) {
    case FrameKind::kStarted:
      agent.started = true;
      if (std::all_of(agents_.begin(), agents_.end(),
                      [](const auto& each) { return each->started; })) {
        start_by_ns_ = INT64_MAX;
      }
      return;
    case FrameKind::kOut:
      rank.tail.Add(frame.bytes);
      return rank.out.Add(frame.bytes, out_.bytes());
    case FrameKind::kErr:
      rank.tail.Add(frame.bytes);
      return rank.err.Add(frame.bytes, err_.bytes());
    case FrameKind::kInputTaken:
      input_unread_ -= std::min(input_unread_, static_cast<size_t>(NumberIn(frame.bytes)));
      return;
    case FrameKind::kDone:
      agent.done = true;
      return;
    case FrameKind::kEnded:
      rank.ended = true;
      if (frame.rank == 0) input_.Reset();
      outcome = OutcomeOf(frame.rank, NumberIn(frame.bytes));
      if (outcome.kind == Outcome::Kind::kDone) {
        ++done_ranks_;
        return;
      }
      outcome.detail = rank.why_ended;
      break;
    case FrameKind::kWhyEnded:
      rank.why_ended = frame.bytes;
      return;
    case FrameKind::kCannotRun:
    case FrameKind::kCannotStart:
      outcome.kind = frame.kind == FrameKind::kCannotRun ? Outcome::Kind::kCannotRun
                                                         : Outcome::Kind::kCannotStart;
      outcome.rank = frame.rank;
      outcome.number = NumberIn(frame.bytes);
      break;
    case FrameKind::kProblem:
      return FailHost(agent, frame.bytes);
    default:
      return;  // only this side says the others
  }
  FailRank(std::move(outcome));
}

void HostsSupervisor::ReadInput() {
  char buffer[16 << 10];
  const size_t room = std::min(sizeof(buffer), kInputWindowBytes - input_unread_);
  const ssize_t count = read(input_.get(), buffer, room);
  if (count < 0 && (errno == EINTR || errno == EAGAIN)) return;
  AgentLink& agent = *ranks_[0].agent;
  if (count <= 0) {
    agent.Send(FrameKind::kInputEnd, 0, "");
    return input_.Reset();
  }
  agent.Send(FrameKind::kInput, 0, absl::string_view(buffer, static_cast<size_t>(count)));
  input_unread_ += static_cast<size_t>(count);
}

void HostsSupervisor::ReadNews() {
  rendezvous_->TakeNews();
  const std::string missing = rendezvous_->TakeWaiting();
  if (!missing.empty() && !ending_) Tell(absl::StrCat("waiting for ", missing));
  if (rendezvous_->IsOver()) {
    meet_by_ns_ = INT64_MAX;
  } else if (rendezvous_->AnyCame() && meet_by_ns_ == INT64_MAX) {
    meet_by_ns_ = clock_.NowNs() + options_.start_timeout_ns;
  }
}

void HostsSupervisor::Reap() {
  int status = 0;
  for (pid_t pid = waitpid(-1, &status, WNOHANG); pid > 0; pid = waitpid(-1, &status, WNOHANG)) {
    for (const auto& agent : agents_) {
      if (!agent->running || agent->pid() != pid) continue;
      agent->running = false;
      agent->wait_status = status;
    }
  }
}

// An agent that has ended and whose output was read ends well only if its far side said so.
void HostsSupervisor::JudgeAgent(AgentLink& agent) {
  if (agent.judged || agent.running || agent.out_open()) return;
  agent.judged = true;
  for (Rank& rank : ranks_) {
    if (rank.agent == &agent) rank.ended = true;
  }
  if (agent.done || ending_) return;
  FailHost(agent, absl::StrCat(agent.started ? "is lost: its agent " : "did not start: its agent ",
                               WaitText(agent.wait_status)));
}

void HostsSupervisor::Beat(AgentLink& agent) {
  if (!agent.running || agent.judged) return;
  agent.SendBeat(clock_.NowNs());
  if (!agent.heartbeat.IsLost(clock_.NowNs())) return;
  agent.judged = true;
  for (Rank& rank : ranks_) {
    if (rank.agent == &agent) rank.ended = true;
  }
  kill(-agent.pid(), SIGKILL);
  if (ending_) return;
  FailHost(agent, absl::StrCat("is lost: nothing was heard of it for ", options_.host_timeout_text,
                               "; --host-timeout gives more time"));
}

std::string HostsSupervisor::WaitText(int wait_status) const {
  if (WIFSIGNALED(wait_status)) return absl::StrCat("was killed by signal ", WTERMSIG(wait_status));
  return absl::StrCat("exited with code ", WEXITSTATUS(wait_status));
}

void HostsSupervisor::FailHost(const AgentLink& agent, std::string detail) {
  Outcome outcome = {.kind = Outcome::Kind::kHostFailed};
  outcome.host = agent.place().host;
  outcome.ranks = agent.Ranks();
  outcome.detail = std::move(detail);
  outcome.lost = agent.started;
  Fail(std::move(outcome), agent.tail().Lines(absl::StrCat("  ", agent.place().host, ": ")));
}

void HostsSupervisor::FailRank(Outcome outcome) {
  const Rank& rank = ranks_[static_cast<size_t>(outcome.rank)];
  outcome.host = rank.agent->place().host;
  // Before it has met the others its own words are what the user needs.
  std::string last_words;
  if (rendezvous_ == nullptr || !rendezvous_->IsOver()) {
    last_words = rank.tail.Lines(absl::StrCat("  [", outcome.rank, "] "));
  }
  Fail(std::move(outcome), std::move(last_words));
}

void HostsSupervisor::Fail(Outcome outcome, std::string last_words) {
  if (ending_) return;
  if (!options_.end_on_failure) {
    GoOnWithout(outcome);
    TellLastWords(last_words);
    return;
  }
  const bool better = outcome_.kind == Outcome::Kind::kExited &&
                      outcome.kind != Outcome::Kind::kExited && settle_at_ns_ != INT64_MAX;
  if (failed_ && !better) return;
  failed_ = true;
  outcome_ = std::move(outcome);
  last_words_ = std::move(last_words);
  const bool settle = outcome_.kind == Outcome::Kind::kExited;
  settle_at_ns_ = clock_.NowNs() + (settle ? kSettleNs : 0);
}

void HostsSupervisor::CheckDeadlines() {
  const int64_t now_ns = clock_.NowNs();
  if (!ending_) {
    if (now_ns >= settle_at_ns_) {
      settle_at_ns_ = INT64_MAX;
      End(outcome_, SIGTERM);
    } else if (now_ns >= timeout_at_ns_) {
      End({.kind = Outcome::Kind::kTimedOut}, SIGTERM);
    } else if (now_ns >= start_by_ns_ || now_ns >= meet_by_ns_) {
      NameMissing();
    } else if (start_by_ns_ != INT64_MAX && start_notice_.Due(now_ns)) {
      TellWaitingForHosts();
    }
  }
  if (ending_ && now_ns >= kill_at_ns_) Kill();
}

void HostsSupervisor::TellWaitingForHosts() {
  std::vector<std::string> waiting;
  for (const auto& agent : agents_) {
    if (!agent->started && !agent->judged) waiting.push_back(agent->Name());
  }
  if (!waiting.empty()) Tell(absl::StrCat("waiting for ", absl::StrJoin(waiting, ", ")));
}

// A start deadline has passed: names the host or the rank that is missing.
void HostsSupervisor::NameMissing() {
  for (const auto& agent : agents_) {
    if (agent->started || start_by_ns_ == INT64_MAX) continue;
    start_by_ns_ = INT64_MAX;
    if (agent->judged) continue;
    agent->judged = true;
    kill(-agent->pid(), SIGKILL);
    return FailHost(*agent, absl::StrCat("did not start within ", options_.start_timeout_text,
                                         "; --start-timeout gives more time"));
  }
  if (clock_.NowNs() < meet_by_ns_) return;
  meet_by_ns_ = INT64_MAX;
  const std::vector<int> missing = rendezvous_->Missing();
  if (missing.empty()) return;
  const Rank& first = ranks_[static_cast<size_t>(missing.front())];
  Outcome outcome = {.kind = Outcome::Kind::kNotMet, .rank = missing.front()};
  outcome.detail = absl::StrCat(first.ended ? "and has ended; waited " : "within ",
                                options_.start_timeout_text, " for it since the first came");
  if (missing.size() > 1) {
    absl::StrAppend(&outcome.detail, "; missing in all: ranks ", FormatRanks(missing));
  }
  FailRank(std::move(outcome));
}

void HostsSupervisor::AskToEnd(int signal) {
  kill_at_ns_ = clock_.NowNs() + options_.grace_ns + kAgentEndNs;
  for (const auto& agent : agents_) {
    if (!agent->running) continue;
    if (agent->started) {
      agent->Send(FrameKind::kSignal, signal, "");
    } else {
      kill(-agent->pid(), SIGKILL);  // it could not pass anything on
    }
  }
}

void HostsSupervisor::KillAll() {
  for (const auto& agent : agents_) {
    // Its far side ends everything when it sees the end of its input.
    if (agent->running) kill(-agent->pid(), SIGKILL);
  }
}

int HostsSupervisor::RunningRanks() const {
  return static_cast<int>(std::count_if(ranks_.begin(), ranks_.end(), [](const Rank& rank) {
    return !rank.ended && rank.agent->started && rank.agent->running;
  }));
}

bool HostsSupervisor::AgentsRun() const {
  return std::any_of(agents_.begin(), agents_.end(), [](const auto& agent) {
    return agent->running || (agent->out_open() && !agent->judged);
  });
}

void HostsSupervisor::PassOnTheRest() {
  draining_ = true;
  const auto anything_left = [this] {
    return !out_.Empty() || !err_.Empty() ||
           std::any_of(agents_.begin(), agents_.end(),
                       [](const auto& agent) { return agent->out() >= 0 || agent->err() >= 0; });
  };
  const int64_t give_up_at_ns = clock_.NowNs() + kFlushNs;
  while (anything_left() && outcome_.kind != Outcome::Kind::kLauncherGone) {
    if ((ending_ || outcome_.kind != Outcome::Kind::kDone) && clock_.NowNs() >= give_up_at_ns)
      return;
    kill_at_ns_ = ending_ ? give_up_at_ns : INT64_MAX;
    Step();
  }
  for (Rank& rank : ranks_) {
    rank.out.Finish(out_.bytes());
    rank.err.Finish(err_.bytes());
  }
}

void HostsSupervisor::TellLastWords(const std::string& words) {
  if (!words.empty()) absl::StrAppend(&err_.bytes(), "its last output:\n", words);
}

}  // namespace syncopate::launch
