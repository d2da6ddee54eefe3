#include "launch/agent_supervisor.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "launch/process_tree.h"
#include "launch/supervisor_waits.h"
#include "launch/worker_process.h"

namespace syncopate::launch {
namespace {

// How long the far launcher may be silent before it has said what to start, and how long it may be.
constexpr int64_t kStartSilenceNs = 120'000'000'000;

}  // namespace

AgentSupervisor::AgentSupervisor(const Clock& clock, UniqueFd launcher, UniqueFd commands,
                                 const sigset_t& user_mask)
    : clock_(clock),
      launcher_(std::move(launcher)),
      commands_(std::move(commands)),
      user_mask_(user_mask),
      out_(STDOUT_FILENO),
      heartbeat_(kStartSilenceNs, clock.NowNs()) {}

int AgentSupervisor::Run() {
  signals_ = WatchSignals();
  out_.bytes() = kAgentMark;
  while (!Over()) Step();
  EndDescendants(clock_, clock_.NowNs() + kKillNs);
  draining_ = true;
  while (!gone_ && std::any_of(streams_.begin(), streams_.end(),
                               [](const Stream& stream) { return stream.fd.ok(); })) {
    Step();
  }
  Say(FrameKind::kDone, 0, "");
  while (!gone_ && !out_.Empty()) Step();
  return gone_ ? 1 : 0;
}

bool AgentSupervisor::Over() const {
  if (ranks_.Running() == 0) return gone_ || started_;
  // A killed process that does not go is left behind.
  return kill_at_ns_ != INT64_MAX && clock_.NowNs() >= kill_at_ns_ + kKillNs;
}

int64_t AgentSupervisor::NextDeadlineNs() const {
  const int64_t beat_ns = gone_ ? INT64_MAX : heartbeat_.NextNs();
  if (kill_at_ns_ == INT64_MAX || draining_) return beat_ns;
  return std::min(beat_ns, clock_.NowNs() < kill_at_ns_ ? kill_at_ns_ : kill_at_ns_ + kKillNs);
}

void AgentSupervisor::Step() {
  polls_.clear();
  polls_.push_back({signals_.get(), POLLIN, 0});
  polls_.push_back({launcher_.get(), POLLIN, 0});
  polls_.push_back({exec_errors_.get(), POLLIN, 0});
  polls_.push_back({commands_.get(), POLLIN, 0});
  polls_.push_back({gone_ || out_.Empty() ? -1 : out_.fd(), POLLOUT, 0});
  polls_.push_back({input_bytes_.empty() ? -1 : input_.get(), POLLOUT, 0});
  const size_t own = polls_.size();
  bool may_read = false;
  for (const Stream& stream : streams_) {
    const bool read = stream.fd.ok() && (gone_ || !out_.Full());
    may_read = may_read || read;
    polls_.push_back({read ? stream.fd.get() : -1, POLLIN, 0});
  }
  const int timeout_ms = draining_ && may_read ? 0 : PollTimeoutMs(clock_, NextDeadlineNs());
  if (poll(polls_.data(), polls_.size(), timeout_ms) < 0) return;

  for (size_t i = 0; i < streams_.size(); ++i) {
    const pollfd& ready = polls_[own + i];
    if (ready.fd >= 0 && (ready.revents != 0 || draining_)) ReadStream(streams_[i]);
  }
  if (polls_[5].revents != 0) WriteInput();
  if (polls_[2].revents != 0) ReadExecErrors();
  if (polls_[0].revents != 0) ReadSignals();
  if (polls_[3].revents != 0) ReadCommands();
  if (polls_[1].revents != 0) GiveUp();
  Beat();
  if (!gone_ && out_.Write() != 0) GiveUp();
  if (!draining_ && clock_.NowNs() >= kill_at_ns_) ranks_.Signal(SIGKILL);
}

void AgentSupervisor::ReadCommands() {
  char buffer[16 << 10];
  const ssize_t count = read(commands_.get(), buffer, sizeof(buffer));
  if (count < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (count <= 0) return GiveUp();
  heartbeat_.Heard(clock_.NowNs());
  reader_.Add(absl::string_view(buffer, static_cast<size_t>(count)));
  while (true) {
    auto frame = reader_.Next();
    if (!frame.ok()) {
      Say(FrameKind::kProblem, 0, frame.status().message());
      started_ = true;
      commands_.Reset();
      return AskToEnd(SIGTERM);
    }
    if (!frame->has_value()) return;
    Obey(**frame);
  }
}

void AgentSupervisor::Obey(const Frame& frame) {
  switch (frame.kind) {
    case FrameKind::kStart: {
      auto start = DecodeStart(frame.bytes);
      if (started_) return;
      if (start.ok()) return StartRanks(*start);
      Say(FrameKind::kProblem, 0, start.status().message());
      started_ = true;
      return;
    }
    case FrameKind::kInput:
      if (input_.ok() && input_bytes_.size() + frame.bytes.size() <= kInputWindowBytes) {
        input_bytes_ += frame.bytes;
        WriteInput();
      }
      return;
    case FrameKind::kInputEnd:
      input_ended_ = true;
      return WriteInput();
    case FrameKind::kSignal:
      return AskToEnd(frame.rank);
    case FrameKind::kKill:
      kill_at_ns_ = std::min(kill_at_ns_, clock_.NowNs());
      return ranks_.Signal(SIGKILL);
    default:
      return;  // only this side says the others
  }
}

void AgentSupervisor::StartRanks(const RemoteStart& start) {
  started_ = true;
  first_rank_ = start.first_rank;
  grace_ns_ = start.grace_ns;
  heartbeat_ = Heartbeat(start.host_timeout_ns, clock_.NowNs());
  if (chdir(start.folder.c_str()) != 0) {
    return Say(FrameKind::kProblem, 0,
               absl::StrCat("cannot enter the folder ", start.folder, ": ", std::strerror(errno),
                            "; make it there, or start from a folder that all hosts have"));
  }
  int ends[2] = {-1, -1};
  if (!signals_.ok() || pipe2(ends, O_CLOEXEC) != 0) {
    Say(FrameKind::kCannotStart, start.first_rank, absl::StrCat(errno));
    return AskToEnd(SIGTERM);
  }
  const UniqueFd input_read(ends[0]);
  input_ = UniqueFd(ends[1]);
  fcntl(input_.get(), F_SETFL, O_NONBLOCK);
  const RanksStart ranks = {
      .command = start.command,
      .environment = WithVariables(WithVariables(InheritedEnvironment(), start.environment),
                                   notes_.Variables()),
      .job = start.job,
      .first_rank = start.first_rank,
      .ranks = start.ranks,
      .size = start.size,
      .input = input_read.get(),
      .signal_mask = user_mask_};
  const std::optional<ExecError> failed =
      ranks_.Start(ranks, exec_errors_, [this](int rank, WorkerProcess process) {
        streams_.push_back({std::move(process.out), FrameKind::kOut, rank});
        streams_.push_back({std::move(process.err), FrameKind::kErr, rank});
      });
  if (failed.has_value()) {
    Say(FrameKind::kCannotStart, failed->rank, absl::StrCat(failed->error));
    return AskToEnd(SIGTERM);
  }
  Say(FrameKind::kStarted, 0, "");
}

void AgentSupervisor::ReadSignals() {
  if (TakeSignals(signals_, [this](int signal) { AskToEnd(signal); })) Reap();
}

void AgentSupervisor::ReadExecErrors() {
  if (const std::optional<ExecError> report = TakeExecError(exec_errors_)) {
    Say(FrameKind::kCannotRun, report->rank, absl::StrCat(report->error));
  }
}

void AgentSupervisor::Reap() {
  ranks_.Reap([this](int number, int wait_status) {
    ReadExecErrors();  // that tells more than its exit code
    const std::string why = notes_.WhyEnded(ranks_.pid(number));
    if (!why.empty()) Say(FrameKind::kWhyEnded, first_rank_ + number, why);
    Say(FrameKind::kEnded, first_rank_ + number, absl::StrCat(wait_status));
  });
}

void AgentSupervisor::ReadStream(Stream& stream) {
  char buffer[16 << 10];
  const ssize_t count = read(stream.fd.get(), buffer, sizeof(buffer));
  if (count > 0) {
    return Say(stream.kind, stream.rank, absl::string_view(buffer, static_cast<size_t>(count)));
  }
  const bool nothing_yet = count < 0 && (errno == EAGAIN || errno == EINTR);
  if (!nothing_yet || draining_) stream.fd.Reset();
}

void AgentSupervisor::WriteInput() {
  if (!input_.ok()) return;
  if (!input_bytes_.empty()) {
    const ssize_t count = write(input_.get(), input_bytes_.data(), input_bytes_.size());
    if (count < 0 && errno != EAGAIN && errno != EINTR) {  // the rank reads no more
      input_bytes_.clear();
      return input_.Reset();
    }
    if (count > 0) {
      input_bytes_.erase(0, static_cast<size_t>(count));
      Say(FrameKind::kInputTaken, 0, absl::StrCat(count));
    }
  }
  if (input_ended_ && input_bytes_.empty()) input_.Reset();
}

void AgentSupervisor::Say(FrameKind kind, int rank, absl::string_view bytes) {
  if (!gone_) AppendFrame(kind, rank, bytes, out_.bytes());
}

void AgentSupervisor::AskToEnd(int signal) {
  if (kill_at_ns_ == INT64_MAX) kill_at_ns_ = clock_.NowNs() + grace_ns_;
  ranks_.Signal(signal);
  ranks_.Signal(SIGCONT);  // a stopped process would not hear of it
}

void AgentSupervisor::Beat() {
  if (gone_) return;
  const int64_t now_ns = clock_.NowNs();
  if (heartbeat_.TakeBeat(now_ns) && out_.Empty()) Say(FrameKind::kBeat, 0, "");
  if (!heartbeat_.IsLost(now_ns)) return;
  gone_ = true;
  commands_.Reset();
  AskToEnd(SIGTERM);
}

void AgentSupervisor::GiveUp() {
  gone_ = true;
  commands_.Reset();
  kill_at_ns_ = std::min(kill_at_ns_, clock_.NowNs());
  ranks_.Signal(SIGKILL);
}

}  // namespace syncopate::launch
