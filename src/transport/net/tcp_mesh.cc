#include "transport/net/tcp_mesh.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <list>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/status.h"
#include "transport/net/handshake.h"

namespace syncopate::transport::net {
namespace {

// A peer that has connected must prove itself within this.
constexpr int64_t kHandshakeNs = 2'000'000'000;
// A try to connect that hangs before we have proved ourselves is given up after this, and made
// again. After that only the other end gives it up (handshake.h).
constexpr int64_t kConnectNs = 3'000'000'000;
constexpr int64_t kRetryNs = 50'000'000;
// Strangers that may be talking to us at once, beside the workers that are to come. Of more, the
// oldest is dropped.
constexpr int kStrangersMax = 256;

struct SocketAddress {
  sockaddr_storage storage = {};
  socklen_t bytes = 0;
};

absl::StatusOr<SocketAddress> ParseIp(const std::string& ip, uint16_t port) {
  SocketAddress address;
  auto* v4 = reinterpret_cast<sockaddr_in*>(&address.storage);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&address.storage);
  if (inet_pton(AF_INET, ip.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    address.bytes = sizeof(sockaddr_in);
    return address;
  }
  if (inet_pton(AF_INET6, ip.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    address.bytes = sizeof(sockaddr_in6);
    return address;
  }
  return absl::InvalidArgumentError(absl::StrCat("\"", ip, "\" is not an address"));
}

absl::StatusOr<SocketAddress> ParseAddress(const std::string& text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos) {
    return absl::InvalidArgumentError(absl::StrCat("\"", text, "\" is not ADDRESS:PORT"));
  }
  std::string ip = text.substr(0, colon);
  if (ip.size() > 2 && ip.front() == '[' && ip.back() == ']') ip = ip.substr(1, ip.size() - 2);
  SYNCOPATE_ASSIGN_OR_RETURN(const int64_t port, ParseInt(text.substr(colon + 1), 1, 65535));
  return ParseIp(ip, static_cast<uint16_t>(port));
}

// One connection that is not proved yet.
struct Talk {
  UniqueFd fd;
  bool outgoing = false;
  int peer = -1;  // outgoing: whom we call; incoming: who it says it is
  int lane = 0;
  enum class State : uint8_t {
    kPausing,
    kConnecting,
    kAwaitingAnswer,
    kAwaitingLastWord,
    kGreeted,
    kAnswered
  };
  State state = State::kPausing;
  int64_t until_ns = 0;  // the end of the pause or of our patience
  std::string greeting;  // as sent or received
  std::string nonce;     // the acceptor's
  std::string received;
};

class Mesh {
 public:
  Mesh(TcpListener listener, const MeshOptions& options, const Clock& clock, int64_t deadline_ns)
      : listener_(std::move(listener)),
        options_(options),
        clock_(clock),
        deadline_ns_(deadline_ns),
        talks_max_(
            static_cast<size_t>(kStrangersMax + (options.size - 1 - options.rank) * options.lanes)),
        sockets_(static_cast<size_t>(options.size)) {
    for (auto& lanes : sockets_) lanes.resize(static_cast<size_t>(options.lanes));
    missing_ = (options.size - 1) * options.lanes;
  }

  absl::StatusOr<std::vector<std::vector<UniqueFd>>> Run() {
    for (int peer = 0; peer < options_.rank; ++peer) {
      for (int lane = 0; lane < options_.lanes; ++lane) {
        Talk& talk = talks_.emplace_back();
        talk.outgoing = true;
        talk.peer = peer;
        talk.lane = lane;
      }
    }
    while (missing_ > 0) {
      if (clock_.NowNs() >= deadline_ns_) return TooLate();
      SYNCOPATE_RETURN_IF_ERROR(Step());
    }
    return std::move(sockets_);
  }

 private:
  absl::Status Step() {
    const int64_t now_ns = clock_.NowNs();
    int64_t wake_ns = std::min(deadline_ns_, now_ns + 1'000'000'000);
    const bool pausing = now_ns < accept_again_ns_;
    if (pausing) wake_ns = std::min(wake_ns, accept_again_ns_);
    std::vector<pollfd> polls;
    polls.push_back({.fd = pausing ? -1 : listener_.fd.get(), .events = POLLIN, .revents = 0});
    for (Talk& talk : talks_) {
      if (talk.outgoing && now_ns >= talk.until_ns) {
        SYNCOPATE_RETURN_IF_ERROR(Call(talk, now_ns));
      }
      wake_ns = std::min(wake_ns, talk.until_ns);
      const bool connecting = talk.state == Talk::State::kConnecting;
      polls.push_back({.fd = talk.fd.get(),
                       .events = static_cast<short>(connecting ? POLLOUT : POLLIN),
                       .revents = 0});
    }
    const int wait_ms = static_cast<int>(std::max<int64_t>(wake_ns - now_ns, 0) / 1'000'000) + 1;
    if (poll(polls.data(), polls.size(), wait_ms) < 0 && errno != EINTR) {
      return SystemError("cannot wait for connections");
    }
    size_t i = 1;
    for (auto talk = talks_.begin(); talk != talks_.end(); ++i) {
      const bool ready = polls[i].revents != 0;
      // A stranger is late if nothing came of it, not if we were held up ourselves.
      const bool late = !ready && !talk->outgoing && now_ns >= talk->until_ns;
      const bool keep = !late && (!ready || Advance(*talk));
      talk = keep ? std::next(talk) : talks_.erase(talk);
    }
    if (polls[0].revents != 0) Accept();
    if (std::exchange(crowded_, false)) DropStranger();
    return absl::OkStatus();
  }

  // One that has said nothing yet goes first: workers speak at once. False: there is nobody.
  bool DropStranger() {
    const auto silent = std::find_if(talks_.begin(), talks_.end(), [](const Talk& t) {
      return !t.outgoing && t.state == Talk::State::kGreeted && t.received.empty();
    });
    const auto any =
        std::find_if(talks_.begin(), talks_.end(), [](const Talk& t) { return !t.outgoing; });
    if (any == talks_.end()) return false;
    talks_.erase(silent != talks_.end() ? silent : any);
    return true;
  }

  size_t Strangers() const {
    return static_cast<size_t>(
        std::count_if(talks_.begin(), talks_.end(), [](const Talk& t) { return !t.outgoing; }));
  }

  // Begins, or begins again, to connect.
  absl::Status Call(Talk& talk, int64_t now_ns) {
    const std::string& text = options_.addresses[static_cast<size_t>(talk.peer)];
    absl::StatusOr<SocketAddress> address = ParseAddress(text);
    if (!address.ok()) return At(absl::StrCat("address of worker ", talk.peer), address.status());
    talk.fd =
        UniqueFd(socket(address->storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!talk.fd.ok()) {
      last_error_ = absl::StrCat("cannot make a socket: ", std::strerror(errno));
      Pause(talk);
      crowded_ = true;
      return absl::OkStatus();
    }
    talk.received.clear();
    talk.until_ns = now_ns + kConnectNs;
    talk.state = Talk::State::kConnecting;
    if (connect(talk.fd.get(), reinterpret_cast<const sockaddr*>(&address->storage),
                address->bytes) != 0 &&
        errno != EINPROGRESS) {
      Pause(talk);
    }
    return absl::OkStatus();
  }

  void Pause(Talk& talk) {
    talk.fd.Reset();
    talk.state = Talk::State::kPausing;
    talk.until_ns = clock_.NowNs() + kRetryNs;
  }

  void Accept() {
    UniqueFd fd(accept4(listener_.fd.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd.ok()) {
      // Out of descriptors: the connection waits on, and would be told of again at once.
      const bool gone = errno == EAGAIN || errno == EINTR || errno == ECONNABORTED;
      if (!gone && !DropStranger()) accept_again_ns_ = clock_.NowNs() + kRetryNs;
      return;
    }
    if (Strangers() >= talks_max_) DropStranger();
    Talk& talk = talks_.emplace_back();
    talk.fd = std::move(fd);
    talk.state = Talk::State::kGreeted;
    talk.until_ns = clock_.NowNs() + kHandshakeNs;
  }

  // False: the talk is over, well or badly.
  bool Advance(Talk& talk) {
    const absl::Status status = talk.outgoing ? AdvanceOutgoing(talk) : AdvanceIncoming(talk);
    if (status.ok()) return talk.fd.ok();
    if (!talk.outgoing) {
      Log(LogLevel::kInfo, "turned a connection away: ", status.message());
      return false;
    }
    last_error_ = absl::StrCat("worker ", talk.peer, ": ", status.message());
    Pause(talk);
    return true;
  }

  // Reads until `bytes` are there; true then.
  absl::StatusOr<bool> Fill(Talk& talk, size_t bytes) {
    char buffer[128];
    const size_t wanted = std::min(bytes - talk.received.size(), sizeof(buffer));
    const ssize_t got = recv(talk.fd.get(), buffer, wanted, 0);
    if (got == 0) return absl::UnavailableError("the other end hung up");
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    if (got < 0) return SystemError("cannot read");
    talk.received.append(buffer, static_cast<size_t>(got));
    return talk.received.size() == bytes;
  }

  absl::Status Say(Talk& talk, const std::string& bytes) {
    const ssize_t sent = send(talk.fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent != static_cast<ssize_t>(bytes.size())) return SystemError("cannot write");
    return absl::OkStatus();
  }

  absl::Status AdvanceOutgoing(Talk& talk) {
    if (talk.state == Talk::State::kConnecting) {
      int error = 0;
      socklen_t length = sizeof(error);
      getsockopt(talk.fd.get(), SOL_SOCKET, SO_ERROR, &error, &length);
      if (error != 0) {
        errno = error;
        return SystemError("cannot connect");
      }
      SYNCOPATE_ASSIGN_OR_RETURN(std::string nonce, MakeNonce());
      talk.greeting = Encode(Greeting{.job = options_.job,
                                      .from = static_cast<uint32_t>(options_.rank),
                                      .to = static_cast<uint32_t>(talk.peer),
                                      .lane = static_cast<uint32_t>(talk.lane),
                                      .nonce = std::move(nonce)});
      SYNCOPATE_RETURN_IF_ERROR(Say(talk, talk.greeting));
      talk.state = Talk::State::kAwaitingAnswer;
      return absl::OkStatus();
    }
    const bool proved = talk.state == Talk::State::kAwaitingLastWord;
    SYNCOPATE_ASSIGN_OR_RETURN(const bool full, Fill(talk, proved ? kProofBytes : kAnswerBytes));
    if (!full) return absl::OkStatus();
    if (proved) {
      if (!LastWordIsRight(options_.key, talk.greeting, talk.nonce, talk.received)) {
        return absl::PermissionDeniedError("its last word does not prove the job's key");
      }
      Admit(talk);
      return absl::OkStatus();
    }
    SYNCOPATE_ASSIGN_OR_RETURN(const std::string proof,
                               MakeProof(options_.key, talk.greeting, talk.received));
    talk.nonce = talk.received.substr(0, kNonceBytes);
    talk.received.clear();
    SYNCOPATE_RETURN_IF_ERROR(Say(talk, proof));
    talk.state = Talk::State::kAwaitingLastWord;
    talk.until_ns = deadline_ns_;
    return absl::OkStatus();
  }

  absl::Status AdvanceIncoming(Talk& talk) {
    const bool greeted = talk.state == Talk::State::kGreeted;
    SYNCOPATE_ASSIGN_OR_RETURN(const bool full, Fill(talk, greeted ? kGreetingBytes : kProofBytes));
    if (!full) return absl::OkStatus();
    if (greeted) {
      SYNCOPATE_ASSIGN_OR_RETURN(const Greeting greeting, DecodeGreeting(talk.received));
      if (greeting.job != options_.job || greeting.to != static_cast<uint32_t>(options_.rank) ||
          greeting.from <= static_cast<uint32_t>(options_.rank) ||
          greeting.from >= static_cast<uint32_t>(options_.size) ||
          greeting.lane >= static_cast<uint32_t>(options_.lanes)) {
        return absl::InvalidArgumentError("it belongs to another job, or has no such place in it");
      }
      talk.peer = static_cast<int>(greeting.from);
      talk.lane = static_cast<int>(greeting.lane);
      talk.greeting = std::exchange(talk.received, {});
      SYNCOPATE_ASSIGN_OR_RETURN(talk.nonce, MakeNonce());
      SYNCOPATE_RETURN_IF_ERROR(Say(talk, MakeAnswer(options_.key, talk.greeting, talk.nonce)));
      talk.state = Talk::State::kAnswered;
      return absl::OkStatus();
    }
    if (!ProofIsRight(options_.key, talk.greeting, talk.nonce, talk.received)) {
      return absl::PermissionDeniedError("it does not know the job's key");
    }
    SYNCOPATE_RETURN_IF_ERROR(Say(talk, MakeLastWord(options_.key, talk.greeting, talk.nonce)));
    Admit(talk);
    return absl::OkStatus();
  }

  void Admit(Talk& talk) {
    UniqueFd& place = sockets_[static_cast<size_t>(talk.peer)][static_cast<size_t>(talk.lane)];
    // The other end tries again when the network has cut the first connection: the newer counts.
    if (!place.ok()) --missing_;
    place = std::move(talk.fd);
  }

  absl::Status TooLate() const {
    std::vector<int> missing;
    for (int peer = 0; peer < options_.size; ++peer) {
      if (peer == options_.rank) continue;
      const auto& lanes = sockets_[static_cast<size_t>(peer)];
      if (!std::all_of(lanes.begin(), lanes.end(), [](const UniqueFd& fd) { return fd.ok(); })) {
        missing.push_back(peer);
      }
    }
    std::string where;
    if (!options_.hosts.empty() && !missing.empty()) {
      where = absl::StrCat(" (worker ", missing[0], " is on ",
                           options_.hosts[static_cast<size_t>(missing[0])], ")");
    }
    return WithBlast(
        absl::DeadlineExceededError(absl::StrCat(
            "no connection with workers ", FormatRanks(missing), where, " in time",
            last_error_.empty() ? "" : absl::StrCat("; last error: ", last_error_),
            "; is the network between the hosts open, and SYNCOPATE_SOCKET_IFNAME right?")),
        BlastRadius::kJob, missing.empty() ? -1 : missing.front());
  }

  TcpListener listener_;
  const MeshOptions& options_;
  const Clock& clock_;
  const int64_t deadline_ns_;
  const size_t talks_max_;  // incoming ones
  std::vector<std::vector<UniqueFd>> sockets_;
  std::list<Talk> talks_;  // oldest first
  int64_t accept_again_ns_ = 0;
  bool crowded_ = false;  // there was no descriptor for a call of ours
  int missing_ = 0;
  std::string last_error_;
};

}  // namespace

absl::StatusOr<TcpListener> ListenTcp(const std::string& ip) {
  SYNCOPATE_ASSIGN_OR_RETURN(SocketAddress address, ParseIp(ip, 0));
  TcpListener listener;
  listener.fd =
      UniqueFd(socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener.fd.ok() ||
      bind(listener.fd.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.bytes) !=
          0 ||
      listen(listener.fd.get(), 1024) != 0 ||
      getsockname(listener.fd.get(), reinterpret_cast<sockaddr*>(&address.storage),
                  &address.bytes) != 0) {
    return SystemError(absl::StrCat("cannot listen at ", ip));
  }
  const bool v6 = address.storage.ss_family == AF_INET6;
  const uint16_t port = v6 ? reinterpret_cast<const sockaddr_in6*>(&address.storage)->sin6_port
                           : reinterpret_cast<const sockaddr_in*>(&address.storage)->sin_port;
  listener.address = absl::StrCat(v6 ? "[" : "", ip, v6 ? "]:" : ":", ntohs(port));
  return listener;
}

absl::StatusOr<std::vector<std::vector<UniqueFd>>> ConnectMesh(TcpListener listener,
                                                               const MeshOptions& options,
                                                               const Clock& clock,
                                                               int64_t deadline_ns) {
  return Mesh(std::move(listener), options, clock, deadline_ns).Run();
}

}  // namespace syncopate::transport::net
