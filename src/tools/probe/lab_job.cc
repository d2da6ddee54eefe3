#include "tools/probe/lab_job.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "transport/net/net_transport.h"

namespace syncopate::tools {
namespace {

constexpr uint64_t kMessageBytesMax = uint64_t{4} << 20;
constexpr size_t kKeyBytes = 32;

// A message between the parent and a worker is its length in bytes and then its text. Sending and
// receiving have a deadline.
absl::Status Send(const UniqueFd& fd, const std::string& text) {
  const uint64_t size = text.size();
  std::string bytes(reinterpret_cast<const char*>(&size), sizeof(size));
  bytes += text;
  for (size_t sent = 0; sent < bytes.size();) {
    const ssize_t n = send(fd.get(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return absl::UnavailableError("the other process has ended");
    sent += static_cast<size_t>(n);
  }
  return absl::OkStatus();
}

// Until when to wait for a message.
struct Patience {
  const Clock& clock;
  int64_t deadline_ns;
  int cancel_fd = -1;  // readable: no longer at all
};

absl::Status ReceiveBytes(const UniqueFd& fd, char* bytes, size_t size, const Patience& patience) {
  while (size > 0) {
    const int64_t left_ms = (patience.deadline_ns - patience.clock.NowNs()) / 1'000'000;
    pollfd ready[] = {{fd.get(), POLLIN, 0}, {patience.cancel_fd, POLLIN, 0}};
    const int count = left_ms <= 0 ? 0 : poll(ready, std::size(ready), static_cast<int>(left_ms));
    if (count == 0) return absl::DeadlineExceededError("it did not answer in time");
    if (count < 0) continue;  // EINTR
    if (ready[1].revents != 0) return absl::CancelledError("it is not waited for any more");
    const ssize_t n = recv(fd.get(), bytes, size, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return absl::UnavailableError("its process ended");
    bytes += n;
    size -= static_cast<size_t>(n);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> Receive(const UniqueFd& fd, const Patience& patience) {
  uint64_t size = 0;
  SYNCOPATE_RETURN_IF_ERROR(
      ReceiveBytes(fd, reinterpret_cast<char*>(&size), sizeof(size), patience));
  if (size > kMessageBytesMax) return absl::InvalidArgumentError("its message is too large");
  std::string text(size, '\0');
  SYNCOPATE_RETURN_IF_ERROR(ReceiveBytes(fd, text.data(), size, patience));
  return text;
}

struct Place {
  std::string job;
  int rank = 0;
  int size = 1;
  lab::HostAddress host;
  std::string lab;
};

absl::StatusOr<std::string> Work(const Place& place, const LabWork& work, const UniqueFd& parent,
                                 const Patience& patience) {
  SYNCOPATE_RETURN_IF_ERROR(lab::BecomeHost(place.lab, place.host.name));
  transport::NetOptions options;
  options.job = place.job;
  options.rank = place.rank;
  options.size = place.size;
  options.ip = place.host.address;
  options.host = place.host.name;
  options.arena_bytes = 16 << 20;
  SYNCOPATE_ASSIGN_OR_RETURN(std::unique_ptr<transport::NetStart> start,
                             transport::StartNetTransport(options, patience.clock));
  SYNCOPATE_RETURN_IF_ERROR(Send(parent, start->payload()));
  SYNCOPATE_ASSIGN_OR_RETURN(const std::string key, Receive(parent, patience));
  std::vector<std::string> payloads;
  for (int rank = 0; rank < place.size; ++rank) {
    SYNCOPATE_ASSIGN_OR_RETURN(std::string payload, Receive(parent, patience));
    payloads.push_back(std::move(payload));
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const std::unique_ptr<transport::Transport> transport,
                             start->Connect(payloads, key));
  return work(*transport, place.host.name);
}

// In the worker's process; does not return.
[[noreturn]] void BeWorker(const Place& place, const LabWork& work, const UniqueFd& parent,
                           const Patience& patience) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::signal(signal, SIG_DFL);
  const absl::StatusOr<std::string> result = Work(place, work, parent, patience);
  const std::string text =
      result.ok() ? absl::StrCat("+", *result) : absl::StrCat("-", result.status().message());
  Send(parent, text).IgnoreError();
  _exit(0);
}

// The processes of a job; those that still run are killed when it goes.
struct Workers {
  ~Workers() {
    for (const pid_t pid : pids) kill(pid, SIGKILL);
    for (const pid_t pid : pids) waitpid(pid, nullptr, 0);
  }
  std::vector<pid_t> pids;
  std::vector<UniqueFd> fds;
};

}  // namespace

absl::StatusOr<std::string> RunInLab(const lab::Lab& lab, const LabWork& work, const Clock& clock,
                                     int64_t timeout_ns, int cancel_fd) {
  const Patience patience{
      .clock = clock, .deadline_ns = clock.NowNs() + timeout_ns, .cancel_fd = cancel_fd};
  const std::vector<lab::HostAddress> hosts = lab.hosts();
  std::string key(kKeyBytes, '\0');
  if (getrandom(key.data(), key.size(), 0) != static_cast<ssize_t>(key.size())) {
    return absl::UnavailableError("the system gives no random numbers; try again");
  }
  Workers workers;
  const pid_t self = getpid();
  for (size_t rank = 0; rank < hosts.size(); ++rank) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
      return absl::ResourceExhaustedError(absl::StrCat("no socket: ", strerror(errno)));
    }
    UniqueFd ours(pair[0]), theirs(pair[1]);
    const pid_t pid = fork();
    if (pid < 0) {
      return absl::ResourceExhaustedError(absl::StrCat("no process: ", strerror(errno)));
    }
    if (pid == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != self) _exit(1);
      const Place place = {.job = absl::StrCat("probe-", lab.name(), "-", self),
                           .rank = static_cast<int>(rank),
                           .size = static_cast<int>(hosts.size()),
                           .host = hosts[rank],
                           .lab = lab.name()};
      BeWorker(place, work, theirs, {clock, patience.deadline_ns});
    }
    workers.pids.push_back(pid);
    workers.fds.push_back(std::move(ours));
  }
  const auto at = [&](size_t rank, const absl::Status& status) {
    return At(absl::StrCat("host ", hosts[rank].name), status);
  };
  std::vector<std::string> payloads;
  for (size_t rank = 0; rank < hosts.size(); ++rank) {
    absl::StatusOr<std::string> payload = Receive(workers.fds[rank], patience);
    if (!payload.ok()) return at(rank, payload.status());
    if (!payload->empty() && payload->front() == '-') {
      return at(rank, absl::FailedPreconditionError(payload->substr(1)));
    }
    payloads.push_back(*std::move(payload));
  }
  for (size_t rank = 0; rank < hosts.size(); ++rank) {
    absl::Status sent = Send(workers.fds[rank], key);
    for (const std::string& payload : payloads) sent.Update(Send(workers.fds[rank], payload));
    if (!sent.ok()) return at(rank, sent);
  }
  std::string result;
  std::vector<std::string> errors;  // one often follows from another: all are told
  for (size_t rank = 0; rank < hosts.size(); ++rank) {
    const absl::StatusOr<std::string> text = Receive(workers.fds[rank], patience);
    if (absl::IsCancelled(text.status())) return text.status();
    if (!text.ok()) {
      errors.push_back(std::string(at(rank, text.status()).message()));
    } else if (text->empty() || text->front() != '+') {
      errors.push_back(absl::StrCat("host ", hosts[rank].name, ": ",
                                    text->substr(std::min<size_t>(1, text->size()))));
    } else if (rank == 0) {
      result = text->substr(1);
    }
  }
  if (!errors.empty()) return absl::UnavailableError(absl::StrJoin(errors, "; "));
  return result;
}

}  // namespace syncopate::tools
