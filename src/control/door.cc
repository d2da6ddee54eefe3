#include "control/door.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <list>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/proof.h"
#include "base/status.h"
#include "control/interfaces.h"
#include "control/sockets.h"

namespace syncopate::control {
namespace {

constexpr char kMagic[] = "SYNCRDV2";
constexpr size_t kMagicBytes = 8;
// A connection must prove itself within this.
constexpr int64_t kStrangerNs = 2'000'000'000;
// The most connections that have not proved themselves at once.
constexpr size_t kStrangersMax = 64;
// The pause when the system has no more file descriptors.
constexpr int64_t kPauseNs = 100'000'000;

// Both sides' nonces are in every proof, so none can be shown a second time.
ProofText ServerProof(absl::string_view worker_nonce, absl::string_view connection_nonce,
                      absl::string_view meeting_nonce) {
  return ProofText("syncopate door server")
      .Add(worker_nonce)
      .Add(connection_nonce)
      .Add(meeting_nonce);
}
ProofText WorkerProof(absl::string_view worker_nonce, absl::string_view connection_nonce,
                      absl::string_view meeting_nonce) {
  return ProofText("syncopate door worker")
      .Add(worker_nonce)
      .Add(connection_nonce)
      .Add(meeting_nonce);
}

ProofText WelcomeProof(absl::string_view worker_nonce, absl::string_view connection_nonce,
                       absl::string_view meeting_nonce) {
  return ProofText("syncopate door welcome")
      .Add(worker_nonce)
      .Add(connection_nonce)
      .Add(meeting_nonce);
}

// A fresh connection takes as much as a handshake has at once.
bool Say(int fd, absl::string_view bytes) {
  return send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
}

// A connection that has not proved anything yet.
struct Stranger {
  UniqueFd fd;
  int64_t deadline_ns = 0;
  std::string read;          // of the message that comes next
  std::string worker_nonce;  // after the first message
  std::string connection_nonce;
};

class OpenDoor final : public Door {
 public:
  OpenDoor(Listener listener, DoorOptions options, const Clock& clock)
      : options_(std::move(options)),
        clock_(clock),
        listener_(std::move(listener.fd)),
        stop_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        thread_([this] { Run(); }) {}

  ~OpenDoor() override {
    const uint64_t one = 1;
    (void)!write(stop_.get(), &one, sizeof(one));
    thread_.join();
  }

 private:
  enum class Progress { kWaits, kProved, kRefused };

  void Run();
  void Accept();
  // Reads what is there; never more than the handshake has.
  Progress Hear(Stranger& stranger);
  bool Greet(Stranger& stranger);
  bool Welcome(const Stranger& stranger);

  const DoorOptions options_;
  const Clock& clock_;
  const UniqueFd listener_;
  const UniqueFd stop_;
  std::list<Stranger> strangers_;  // oldest first
  int64_t accept_again_ns_ = 0;
  std::thread thread_;
};

void OpenDoor::Run() {
  std::vector<pollfd> polls;
  while (true) {
    const int64_t now_ns = clock_.NowNs();
    const bool paused = now_ns < accept_again_ns_;
    int64_t wake_ns = paused ? accept_again_ns_ : INT64_MAX;
    polls.assign({{stop_.get(), POLLIN, 0}, {paused ? -1 : listener_.get(), POLLIN, 0}});
    for (const Stranger& stranger : strangers_) {
      polls.push_back({stranger.fd.get(), POLLIN, 0});
      wake_ns = std::min(wake_ns, stranger.deadline_ns);
    }
    const int64_t left_ms = wake_ns == INT64_MAX ? -1 : (wake_ns - now_ns) / 1'000'000 + 1;
    if (poll(polls.data(), polls.size(), static_cast<int>(std::max<int64_t>(left_ms, -1))) < 0) {
      continue;
    }
    if (polls[0].revents != 0) return;
    size_t i = 2;
    for (auto it = strangers_.begin(); it != strangers_.end(); ++i) {
      const Progress progress = polls[i].revents != 0 ? Hear(*it) : Progress::kWaits;
      const bool late = progress == Progress::kWaits && clock_.NowNs() >= it->deadline_ns;
      if (progress == Progress::kProved) options_.welcome(std::move(it->fd));
      it = progress == Progress::kWaits && !late ? std::next(it) : strangers_.erase(it);
    }
    if (polls[1].revents != 0) Accept();
  }
}

void OpenDoor::Accept() {
  UniqueFd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!fd.ok()) {
    // Others may free descriptors; asking again at once would only burn time.
    if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
      accept_again_ns_ = clock_.NowNs() + kPauseNs;
    }
    return;
  }
  const int on = 1;
  setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  if (strangers_.size() >= kStrangersMax) strangers_.pop_front();
  strangers_.push_back({.fd = std::move(fd),
                        .deadline_ns = clock_.NowNs() + kStrangerNs,
                        .read = {},
                        .worker_nonce = {},
                        .connection_nonce = {}});
}

OpenDoor::Progress OpenDoor::Hear(Stranger& stranger) {
  while (true) {
    const bool first = stranger.worker_nonce.empty();
    const size_t wanted = first ? kMagicBytes + kNonceBytes : kProofBytes;
    char buffer[kMagicBytes + kNonceBytes + kProofBytes];
    const ssize_t count = recv(stranger.fd.get(), buffer, wanted - stranger.read.size(), 0);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return Progress::kWaits;
    if (count <= 0) return Progress::kRefused;
    stranger.read.append(buffer, static_cast<size_t>(count));
    if (stranger.read.size() < wanted) continue;
    if (!first) {
      return Welcome(stranger) ? Progress::kProved : Progress::kRefused;
    }
    if (!Greet(stranger)) return Progress::kRefused;
  }
}

bool OpenDoor::Greet(Stranger& stranger) {
  if (!absl::StartsWith(stranger.read, kMagic)) return false;
  stranger.worker_nonce = stranger.read.substr(kMagicBytes);
  stranger.read.clear();
  auto nonce = RandomBytes(kNonceBytes);
  if (!nonce.ok()) return false;
  stranger.connection_nonce = *std::move(nonce);
  return Say(stranger.fd.get(),
             absl::StrCat(stranger.connection_nonce, options_.meeting_nonce,
                          ServerProof(stranger.worker_nonce, stranger.connection_nonce,
                                      options_.meeting_nonce)
                              .ProofBy(options_.key)));
}

bool OpenDoor::Welcome(const Stranger& stranger) {
  const std::string& worker = stranger.worker_nonce;
  const std::string& connection = stranger.connection_nonce;
  return WorkerProof(worker, connection, options_.meeting_nonce)
             .IsProvedBy(options_.key, stranger.read) &&
         Say(stranger.fd.get(),
             WelcomeProof(worker, connection, options_.meeting_nonce).ProofBy(options_.key));
}

absl::StatusOr<Welcome> KnockAt(const SocketAddress& address, const std::string& key,
                                const Clock& clock, int64_t deadline_ns) {
  Welcome welcome;
  SYNCOPATE_ASSIGN_OR_RETURN(welcome.fd, ConnectTo(address, clock, deadline_ns));
  SYNCOPATE_ASSIGN_OR_RETURN(const std::string worker_nonce, RandomBytes(kNonceBytes));
  const int fd = welcome.fd.get();
  SYNCOPATE_RETURN_IF_ERROR(SendAll(fd, absl::StrCat(kMagic, worker_nonce), clock, deadline_ns));
  SYNCOPATE_ASSIGN_OR_RETURN(const std::string greeting,
                             ReceiveExactly(fd, 2 * kNonceBytes + kProofBytes, clock, deadline_ns));
  const std::string connection_nonce = greeting.substr(0, kNonceBytes);
  welcome.meeting_nonce = greeting.substr(kNonceBytes, kNonceBytes);
  if (!ServerProof(worker_nonce, connection_nonce, welcome.meeting_nonce)
           .IsProvedBy(key, greeting.substr(2 * kNonceBytes))) {
    return absl::PermissionDeniedError(
        "the rendezvous there has another key: it is another job's, or SYNCOPATE_KEY is wrong");
  }
  SYNCOPATE_RETURN_IF_ERROR(
      SendAll(fd, WorkerProof(worker_nonce, connection_nonce, welcome.meeting_nonce).ProofBy(key),
              clock, deadline_ns));
  SYNCOPATE_ASSIGN_OR_RETURN(const std::string last_word,
                             ReceiveExactly(fd, kProofBytes, clock, deadline_ns));
  if (!WelcomeProof(worker_nonce, connection_nonce, welcome.meeting_nonce)
           .IsProvedBy(key, last_word)) {
    return absl::PermissionDeniedError("the rendezvous there says a welcome that is not its own");
  }
  return welcome;
}

}  // namespace

absl::StatusOr<Listener> ListenAt(const std::string& address, int port) {
  SYNCOPATE_ASSIGN_OR_RETURN(const SocketAddress where, NumericAddress(address, port));
  const auto fail = [&](int error) {
    return absl::UnavailableError(absl::StrCat("cannot listen at ", JoinAddress(address, port),
                                               " for the rendezvous: ", std::strerror(error),
                                               "; SYNCOPATE_SOCKET_IFNAME chooses the interface"));
  };
  Listener listener;
  listener.fd = UniqueFd(socket(where.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!listener.fd.ok()) return fail(errno);
  // A port whose last user has just ended can be had; one that is in use cannot.
  const int on = 1;
  setsockopt(listener.fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (bind(listener.fd.get(), where.get(), where.size) != 0) return fail(errno);
  if (listen(listener.fd.get(), SOMAXCONN) != 0) return fail(errno);
  SocketAddress bound;
  bound.size = sizeof(bound.storage);
  if (getsockname(listener.fd.get(), reinterpret_cast<sockaddr*>(&bound.storage), &bound.size) !=
      0) {
    return fail(errno);
  }
  listener.port = ntohs(bound.family() == AF_INET6
                            ? reinterpret_cast<const sockaddr_in6*>(bound.get())->sin6_port
                            : reinterpret_cast<const sockaddr_in*>(bound.get())->sin_port);
  return listener;
}

std::unique_ptr<Door> Door::Open(Listener listener, DoorOptions options, const Clock& clock) {
  return std::make_unique<OpenDoor>(std::move(listener), std::move(options), clock);
}

absl::StatusOr<Welcome> Knock(const std::string& server, const std::string& key, const Clock& clock,
                              int64_t deadline_ns) {
  SYNCOPATE_ASSIGN_OR_RETURN(const auto where, SplitAddress(server));
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<SocketAddress> addresses,
                             Resolve(where.first, where.second, clock, deadline_ns));
  absl::Status last = absl::NotFoundError("it has no address");
  for (const SocketAddress& address : addresses) {
    auto welcome = KnockAt(address, key, clock, deadline_ns);
    if (welcome.ok()) return welcome;
    last = welcome.status();
  }
  return last;
}

}  // namespace syncopate::control
