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
#include "control/door_handshake.h"
#include "control/interfaces.h"
#include "control/sockets.h"

namespace syncopate::control {
namespace {

// A connection must prove itself within this.
constexpr int64_t kStrangerNs = 2'000'000'000;
// The most connections that have not proved themselves at once.
constexpr size_t kStrangersMax = 64;
// The pause when the system has no more file descriptors.
constexpr int64_t kPauseNs = 100'000'000;

// A connection that has not proved anything yet.
struct Stranger {
  UniqueFd fd;
  int64_t deadline_ns = 0;
  std::string read = {};   // of the message that comes next
  DoorNonces nonces = {};  // the worker's is empty before the first message
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
  strangers_.push_back({.fd = std::move(fd), .deadline_ns = clock_.NowNs() + kStrangerNs});
}

OpenDoor::Progress OpenDoor::Hear(Stranger& stranger) {
  while (true) {
    const bool first = stranger.nonces.worker.empty();
    const size_t wanted = first ? kDoorKnockBytes : kProofBytes;
    char buffer[kDoorKnockBytes];
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
  if (!absl::StartsWith(stranger.read, kDoorMagic)) return false;
  auto nonce = RandomBytes(kNonceBytes);
  if (!nonce.ok()) return false;
  stranger.nonces = {.worker = stranger.read.substr(kDoorMagic.size()),
                     .connection = *std::move(nonce),
                     .meeting = options_.meeting_nonce};
  stranger.read.clear();
  return SayAtDoor(stranger.fd.get(),
                   absl::StrCat(stranger.nonces.connection, stranger.nonces.meeting,
                                DoorServerProof(stranger.nonces).ProofBy(options_.key)));
}

bool OpenDoor::Welcome(const Stranger& stranger) {
  return DoorWorkerProof(stranger.nonces).IsProvedBy(options_.key, stranger.read) &&
         SayAtDoor(stranger.fd.get(), DoorWelcomeProof(stranger.nonces).ProofBy(options_.key));
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

}  // namespace syncopate::control
