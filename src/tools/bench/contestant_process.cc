#include "tools/bench/contestant_process.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "tools/bench/spawn.h"
#include "tools/interrupt.h"

namespace syncopate::tools::bench {
namespace {

constexpr int64_t kPollNs = 50'000'000;             // how late the launcher's end is noticed
constexpr int64_t kQuitPatienceNs = 3'000'000'000;  // from "quit" to SIGTERM
constexpr int64_t kTermPatienceNs = 1'000'000'000;  // from SIGTERM to SIGKILL

absl::Status SystemError(absl::string_view what) {
  return absl::UnavailableError(absl::StrCat(what, ": ", std::strerror(errno)));
}

bool SendLine(int fd, std::string line) {
  line.push_back('\n');
  // Commands are far smaller than a socket's buffer, so they go at once or not at all.
  return send(fd, line.data(), line.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(line.size());
}

}  // namespace

absl::StatusOr<std::unique_ptr<ContestantProcess>> ContestantProcess::Start(
    ContestantSettings settings, const LaunchPlan& plan, const Clock& clock) {
  const std::string name = settings.name;
  auto contestant =
      std::unique_ptr<ContestantProcess>(new ContestantProcess(std::move(settings), clock));
  absl::Status status = contestant->Launch(plan);
  if (status.ok()) status = contestant->Accept();
  if (absl::IsCancelled(status)) return status;
  if (!status.ok()) return At(absl::StrCat(name, " did not start"), status);
  return contestant;
}

absl::Status ContestantProcess::Launch(const LaunchPlan& plan) {
  const std::string path = absl::StrCat(settings_.directory, "/", kControlSocket);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is too long for a socket's name"));
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  listener_ = UniqueFd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener_.ok() ||
      bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 ||
      listen(listener_.get(), settings_.workers) != 0) {
    return SystemError(absl::StrCat("cannot listen on ", path));
  }
  SYNCOPATE_ASSIGN_OR_RETURN(launcher_, Spawn(plan, log_));
  return absl::OkStatus();
}

absl::Status ContestantProcess::Accept() {
  const int64_t deadline = clock_.NowNs() + absl::ToInt64Nanoseconds(settings_.timeout);
  while (ranks_.size() < static_cast<size_t>(settings_.workers)) {
    std::vector<bool> readable;
    absl::Status status = Await({listener_.get()}, deadline, &readable);
    if (absl::IsDeadlineExceeded(status)) {
      return Ended(absl::StrCat(ranks_.size(), " of ", settings_.workers, " ranks came within ",
                                absl::FormatDuration(settings_.timeout)));
    }
    SYNCOPATE_RETURN_IF_ERROR(status);
    UniqueFd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (fd.ok()) ranks_.push_back(Rank{std::move(fd), 0, ""});
  }
  std::vector<std::string> lines;
  SYNCOPATE_RETURN_IF_ERROR(ReadLines(&lines));
  std::vector<Rank> by_rank(ranks_.size());
  for (size_t i = 0; i < lines.size(); ++i) {
    absl::StatusOr<Hello> hello = ParseHello(lines[i]);
    if (!hello.ok()) {
      const absl::Status reply = ParseReply(lines[i]).status();  // "unsupported ..."
      return reply.ok() ? absl::InternalError(hello.status().message()) : reply;
    }
    Rank& rank = by_rank[std::min(static_cast<size_t>(hello->rank), ranks_.size() - 1)];
    if (hello->size != settings_.workers || rank.fd.ok()) {
      return absl::InternalError(
          absl::StrCat("wanted ", settings_.workers, " different ranks, got \"", lines[i], "\""));
    }
    ranks_[i].pid = hello->pid;
    rank = std::move(ranks_[i]);
  }
  ranks_ = std::move(by_rank);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<RankResult>> ContestantProcess::Run(const RunRequest& request) {
  for (size_t r = 0; r < ranks_.size(); ++r) {
    if (!SendLine(ranks_[r].fd.get(), Format(request)))
      return Ended(absl::StrCat("rank ", r, " ended"));
  }
  std::vector<std::string> lines;
  broken_ = true;
  SYNCOPATE_RETURN_IF_ERROR(ReadLines(&lines));
  broken_ = false;
  std::vector<RankResult> results;
  for (size_t r = 0; r < lines.size(); ++r) {
    absl::StatusOr<RankResult> result = ParseReply(lines[r]);
    if (absl::IsUnimplemented(result.status())) return result.status();
    if (!result.ok()) return At(absl::StrCat("rank ", r), result.status());
    results.push_back(*std::move(result));
  }
  return results;
}

absl::Status ContestantProcess::ReadLines(std::vector<std::string>* lines) {
  const int64_t deadline = clock_.NowNs() + absl::ToInt64Nanoseconds(settings_.timeout);
  lines->assign(ranks_.size(), "");
  std::vector<bool> done(ranks_.size(), false);
  while (true) {
    std::vector<size_t> waiting;
    std::vector<int> fds;
    for (size_t r = 0; r < ranks_.size(); ++r) {
      const size_t end = done[r] ? std::string::npos : ranks_[r].received.find('\n');
      if (end != std::string::npos) {
        (*lines)[r] = ranks_[r].received.substr(0, end);
        ranks_[r].received.erase(0, end + 1);
        done[r] = true;
        // The error of one rank is the reason why the others hang, so it is the one to show.
        if (EndsAll((*lines)[r])) {
          return At(absl::StrCat("rank ", r), ParseReply((*lines)[r]).status());
        }
      }
      if (!done[r]) {
        waiting.push_back(r);
        fds.push_back(ranks_[r].fd.get());
      }
    }
    if (waiting.empty()) return absl::OkStatus();
    std::vector<bool> readable;
    const absl::Status status = Await(fds, deadline, &readable);
    if (absl::IsDeadlineExceeded(status)) {
      return Ended(absl::StrCat("no answer from ", waiting.size(), " of ", ranks_.size(),
                                " ranks (the first is ", waiting[0], ") within ",
                                absl::FormatDuration(settings_.timeout),
                                "; --timeout waits longer"));
    }
    SYNCOPATE_RETURN_IF_ERROR(status);
    for (size_t i = 0; i < waiting.size(); ++i) {
      if (!readable[i]) continue;
      const absl::Status read = ReadSome(ranks_[waiting[i]]);
      if (!read.ok()) return Ended(absl::StrCat("rank ", waiting[i], " ", read.message()));
    }
  }
}

absl::Status ContestantProcess::ReadSome(Rank& rank) {
  char buffer[16384];
  const ssize_t n = recv(rank.fd.get(), buffer, sizeof(buffer), 0);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return absl::OkStatus();
  if (n <= 0) return absl::UnavailableError("ended");
  if (rank.received.size() + static_cast<size_t>(n) > kLineBytesMax) {
    return absl::ResourceExhaustedError("sent a line that is too long");
  }
  rank.received.append(buffer, static_cast<size_t>(n));
  return absl::OkStatus();
}

// Polls in short turns: a launcher that ends without a word closes no socket that we watch.
absl::Status ContestantProcess::Await(const std::vector<int>& fds, int64_t deadline_ns,
                                      std::vector<bool>* readable) {
  std::vector<pollfd> polled;
  for (const int fd : fds) polled.push_back({fd, POLLIN, 0});
  polled.push_back({settings_.interrupt_fd, POLLIN, 0});  // poll ignores -1
  while (true) {
    const int64_t left = deadline_ns - clock_.NowNs();
    const int64_t wait_ms = std::clamp(left, int64_t{0}, kPollNs) / 1'000'000;
    const int n = poll(polled.data(), polled.size(), static_cast<int>(wait_ms));
    if (n < 0 && errno != EINTR) return SystemError("poll");
    if (n > 0) {
      if (polled.back().revents != 0) return Interrupted();
      readable->clear();
      for (size_t i = 0; i < fds.size(); ++i) readable->push_back(polled[i].revents != 0);
      return absl::OkStatus();
    }
    if (LauncherEnded()) return Ended("it ended");
    if (left <= 0) return absl::DeadlineExceededError("no answer");
  }
}

absl::Status ContestantProcess::Ended(const std::string& what) {
  std::string message = what;
  if (LauncherEnded()) {
    if (WIFSIGNALED(launcher_status_)) {
      absl::StrAppend(&message, " (signal ", WTERMSIG(launcher_status_), ")");
    } else if (WEXITSTATUS(launcher_status_) != 0) {
      absl::StrAppend(&message, " (exit code ", WEXITSTATUS(launcher_status_), ")");
    }
  }
  const std::string words = LastWords(log_);
  if (!words.empty()) absl::StrAppend(&message, "; its last words: \"", words, "\"");
  return absl::UnavailableError(message);
}

bool ContestantProcess::LauncherEnded() {
  if (launcher_ < 0) return true;
  const pid_t pid = waitpid(launcher_, &launcher_status_, WNOHANG);
  if (pid == launcher_) launcher_ = -1;
  return launcher_ < 0;
}

std::vector<pid_t> ContestantProcess::pids() const {
  std::vector<pid_t> pids;
  for (const Rank& rank : ranks_) pids.push_back(rank.pid);
  return pids;
}

// Waits until the launcher is gone and no rank's socket is open.
void ContestantProcess::WaitForEnd(int64_t patience_ns) {
  const int64_t deadline = clock_.NowNs() + patience_ns;
  while (true) {
    std::vector<pollfd> open;
    for (Rank& rank : ranks_) {
      if (rank.fd.ok()) open.push_back({rank.fd.get(), POLLIN, 0});
    }
    if (LauncherEnded() && open.empty()) return;
    if (clock_.NowNs() > deadline) return;
    poll(open.data(), open.size(), 5);
    for (Rank& rank : ranks_) {
      char buffer[4096];
      if (!rank.fd.ok()) continue;
      const ssize_t n = recv(rank.fd.get(), buffer, sizeof(buffer), MSG_DONTWAIT);
      if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR))) continue;
      rank.fd.Reset();
    }
  }
}

// First a friendly word, then SIGTERM, then SIGKILL to the group of the launcher and to ranks that
// live on outside of it. None of these waits for ever.
ContestantProcess::~ContestantProcess() {
  listener_.Reset();
  for (const Rank& rank : ranks_) SendLine(rank.fd.get(), "quit");
  const auto alive = [this] {
    return !LauncherEnded() ||
           std::any_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.fd.ok(); });
  };
  const bool met = !ranks_.empty() && ranks_[0].pid != 0;
  if (met && !broken_) WaitForEnd(kQuitPatienceNs);
  if (alive()) {
    if (launcher_ > 0) kill(-launcher_, SIGTERM);
    WaitForEnd(kTermPatienceNs);
  }
  if (!alive()) return;
  if (launcher_ > 0) kill(-launcher_, SIGKILL);
  for (const Rank& rank : ranks_) {
    if (rank.fd.ok() && rank.pid > 0) kill(rank.pid, SIGKILL);  // an open socket: it still lives
  }
  if (launcher_ > 0) waitpid(launcher_, &launcher_status_, 0);
}

}  // namespace syncopate::tools::bench
