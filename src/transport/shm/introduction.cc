#include "transport/shm/introduction.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <iterator>
#include <list>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/digest.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/pidfd.h"
#include "base/status.h"
#include "base/wait_notice.h"
#include "transport/shm/control.h"

namespace syncopate::transport::shm {
namespace {

// The whole conversation: each side sends this once, with its file descriptors.
struct HelloMessage {
  uint64_t magic;
  uint64_t job_high;
  uint64_t job_low;
  uint64_t control_bytes;
  uint64_t arena_bytes;
  int32_t rank;
  int32_t size;
  int32_t pid;
  uint32_t text_bytes;
  char text[kTextBytesMax];  // only so many bytes of it are sent
};
constexpr size_t kBareBytes = offsetof(HelloMessage, text);

HelloMessage MakeHello(const IntroductionSpec& spec, const Digest& job) {
  HelloMessage hello = {};
  hello.magic = kMagic;
  hello.job_high = job.high;
  hello.job_low = job.low;
  hello.control_bytes = sizeof(Control);
  hello.arena_bytes = spec.arena_bytes;
  hello.rank = spec.rank;
  hello.size = spec.size;
  hello.pid = getpid();
  hello.text_bytes = static_cast<uint32_t>(spec.text.size());
  std::memcpy(hello.text, spec.text.data(), spec.text.size());
  return hello;
}

constexpr size_t kFdsMax = 4;                // control memory, arena, bell, process
constexpr size_t kMemoryFds = 3;             // all but the process, which may not be there
constexpr int64_t kRetryNsMin = 200'000;     // first pause before another try to connect
constexpr int64_t kRetryNsMax = 20'000'000;  // longest one
// A peer that connected must speak within this, or is dropped.
constexpr int64_t kHelloNs = 2'000'000'000;
// Peers that have connected and not spoken yet; of more, the oldest is dropped.
constexpr size_t kSilentMax = 64;
// The pause when the system has no more file descriptors.
constexpr int64_t kPauseNs = 50'000'000;

std::string SocketName(const Digest& job, int rank) {
  return absl::StrCat("syncopate/", getuid(), "/", job.ToString(), "/", rank);
}

// The ranks of a job that listen, as the kernel's list of sockets has them.
std::set<int> Listening(const Digest& job, int size) {
  std::map<std::string, int> ranks;
  for (int rank = 0; rank < size; ++rank) ranks[absl::StrCat("@", SocketName(job, rank))] = rank;
  std::set<int> listening;
  std::ifstream list("/proc/self/net/unix");
  for (std::string line; std::getline(list, line);) {
    const auto found = ranks.find(line.substr(line.rfind(' ') + 1));
    if (found != ranks.end()) listening.insert(found->second);
  }
  return listening;
}

sockaddr_un Address(const Digest& job, int rank, socklen_t& length) {
  const std::string name = SocketName(job, rank);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());  // a leading zero: abstract
  length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

// The bytes of a hello and room for the descriptors that travel with it, as the kernel wants them.
struct Envelope {
  Envelope(HelloMessage& hello, size_t bytes) : part{.iov_base = &hello, .iov_len = bytes} {
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = space;
    message.msg_controllen = sizeof(space);
  }
  Envelope(const Envelope&) = delete;

  iovec part;
  alignas(cmsghdr) char space[CMSG_SPACE(kFdsMax * sizeof(int))] = {};
  msghdr message = {};
};

absl::Status SendHello(int fd, const HelloMessage& hello, const IntroductionSpec& spec,
                       const UniqueFd& process) {
  HelloMessage copy = hello;
  const size_t bytes = kBareBytes + hello.text_bytes;
  Envelope envelope(copy, bytes);
  std::vector<int> fds;
  if (spec.control_fd >= 0) fds = {spec.control_fd, spec.arena_fd, spec.bell_fd};
  if (spec.control_fd >= 0 && process.ok()) fds.push_back(process.get());
  envelope.message.msg_controllen = CMSG_SPACE(fds.size() * sizeof(int));
  if (fds.empty()) {
    envelope.message.msg_control = nullptr;
    envelope.message.msg_controllen = 0;
  } else {
    cmsghdr* header = CMSG_FIRSTHDR(&envelope.message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
    std::memcpy(CMSG_DATA(header), fds.data(), fds.size() * sizeof(int));
  }
  if (sendmsg(fd, &envelope.message, MSG_NOSIGNAL) != static_cast<ssize_t>(bytes)) {
    return absl::UnavailableError(absl::StrCat("cannot greet a peer: ", std::strerror(errno)));
  }
  return absl::OkStatus();
}

// The process at the other end. An error if it is of another user, who gets nothing of us: whoever
// has our descriptors reads and writes our memory.
absl::StatusOr<ucred> CheckUser(int fd) {
  ucred peer = {};
  socklen_t length = sizeof(peer);
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot tell whose a connection is: ", std::strerror(errno)));
  }
  if (peer.uid != getuid()) {
    return absl::PermissionDeniedError(absl::StrCat("process ", peer.pid, " belongs to user ",
                                                    peer.uid, ", not to user ", getuid(),
                                                    " as this job does"));
  }
  return peer;
}

struct Greeting {
  HelloMessage hello;
  Introduction introduction;
  size_t fds = 0;  // that came with it
};

// Waits for the message of `peer`, a process of this user. SOCK_SEQPACKET keeps it in one piece.
absl::StatusOr<Greeting> ReceiveHello(int fd, const ucred& peer, int64_t wait_ns) {
  pollfd ready{.fd = fd, .events = POLLIN, .revents = 0};
  if (poll(&ready, 1, static_cast<int>(wait_ns / 1'000'000) + 1) != 1) {
    return absl::DeadlineExceededError("a peer connected and stayed silent");
  }
  Greeting greeting = {};
  Envelope envelope(greeting.hello, sizeof(greeting.hello));
  const ssize_t got = recvmsg(fd, &envelope.message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  const cmsghdr* header = CMSG_FIRSTHDR(&envelope.message);
  if (header != nullptr && header->cmsg_type == SCM_RIGHTS) {
    greeting.fds = std::min((header->cmsg_len - CMSG_LEN(0)) / sizeof(int), kFdsMax);
    int fds[kFdsMax] = {-1, -1, -1, -1};
    std::memcpy(fds, CMSG_DATA(header), greeting.fds * sizeof(int));
    greeting.introduction.control = UniqueFd(fds[0]);
    greeting.introduction.arena = UniqueFd(fds[1]);
    greeting.introduction.bell = UniqueFd(fds[2]);
    greeting.introduction.process = UniqueFd(fds[3]);
  }
  if (got < static_cast<ssize_t>(kBareBytes) || greeting.hello.magic != kMagic ||
      greeting.hello.text_bytes > kTextBytesMax ||
      got != static_cast<ssize_t>(kBareBytes + greeting.hello.text_bytes) ||
      (greeting.fds != 0 && greeting.fds < kMemoryFds)) {
    return absl::InvalidArgumentError(
        "a peer's greeting is not Syncopate's, or of another version");
  }
  greeting.introduction.pid = peer.pid;
  greeting.introduction.arena_bytes = greeting.hello.arena_bytes;
  greeting.introduction.text.assign(greeting.hello.text, greeting.hello.text_bytes);
  return greeting;
}

class Meeting {
 public:
  Meeting(const IntroductionSpec& spec, const Clock& clock, int64_t deadline_ns)
      : spec_(spec),
        clock_(clock),
        deadline_ns_(deadline_ns),
        job_(DigestOf(spec.job)),
        hello_(MakeHello(spec, job_)),
        process_(OpenPidFd(getpid())),
        notice_(clock.NowNs()),
        peers_(static_cast<size_t>(spec.size)) {}

  absl::StatusOr<std::vector<Introduction>> Run() {
    if (spec_.size == 1) return std::move(peers_);
    SYNCOPATE_RETURN_IF_ERROR(Listen());
    for (int rank = 0; rank < spec_.rank; ++rank) SYNCOPATE_RETURN_IF_ERROR(Connect(rank));
    while (!Missing().empty()) SYNCOPATE_RETURN_IF_ERROR(Hear());
    return std::move(peers_);
  }

 private:
  // A process of this user that has connected and not spoken yet.
  struct Silent {
    UniqueFd fd;
    ucred peer;
    int64_t until_ns;  // our patience ends
  };

  absl::Status Listen() {
    listener_ = UniqueFd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    socklen_t length = 0;
    const sockaddr_un address = Address(job_, spec_.rank, length);
    if (!listener_.ok() ||
        bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0) {
      if (errno == EADDRINUSE) {
        return absl::AlreadyExistsError(
            absl::StrCat("rank ", spec_.Name(spec_.rank), " of job \"", spec_.job,
                         "\" runs on this host already; give every "
                         "worker its own rank and every job its own id"));
      }
      return absl::UnavailableError(absl::StrCat("cannot make a socket: ", std::strerror(errno)));
    }
    if (listen(listener_.get(), spec_.size) != 0) {
      return absl::UnavailableError(absl::StrCat("cannot listen: ", std::strerror(errno)));
    }
    return absl::OkStatus();
  }

  absl::Status Connect(int rank) {
    socklen_t length = 0;
    const sockaddr_un address = Address(job_, rank, length);
    for (int64_t pause_ns = kRetryNsMin;; pause_ns = std::min(2 * pause_ns, kRetryNsMax)) {
      // Not blocking: a queue that is full is tried again like a socket that is not there yet.
      UniqueFd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      if (!fd.ok()) {
        return absl::UnavailableError(absl::StrCat("cannot make a socket: ", std::strerror(errno)));
      }
      if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), length) == 0) {
        absl::StatusOr<ucred> peer = CheckUser(fd.get());
        if (!peer.ok()) {
          return At(absl::StrCat("the name of rank ", spec_.Name(rank), " of job \"", spec_.job,
                                 "\" is taken"),
                    peer.status());
        }
        // The other side may have died, or lost its patience while this one was stopped: then try
        // again until the deadline. Once it has our hello we do not hang up: it may hold us for met.
        if (SendHello(fd.get(), hello_, spec_, process_).ok()) {
          absl::StatusOr<Greeting> greeting = AwaitHello(fd.get(), *peer);
          if (greeting.ok()) return Admit(*std::move(greeting), rank);
        }
      }
      if (LeftNs() <= 0) return TooLate();
      TellWaiting();
      poll(nullptr, 0, static_cast<int>(std::min(pause_ns, LeftNs()) / 1'000'000) + 1);
    }
  }

  absl::StatusOr<Greeting> AwaitHello(int fd, const ucred& peer) const {
    while (true) {
      absl::StatusOr<Greeting> greeting = ReceiveHello(fd, peer, LeftNs());
      if (!absl::IsDeadlineExceeded(greeting.status()) || LeftNs() <= 0) return greeting;
    }
  }

  // Hears all that have connected at once, so that those who say nothing hold nobody up.
  absl::Status Hear() {
    if (LeftNs() <= 0) return TooLate();
    TellWaiting();
    const int64_t now_ns = clock_.NowNs();
    const bool pausing = now_ns < accept_again_ns_;
    int64_t wake_ns = std::min(now_ns + LeftNs(), notice_.next_ns());
    if (pausing) wake_ns = std::min(wake_ns, accept_again_ns_);
    std::vector<pollfd> polls = {
        {.fd = pausing ? -1 : listener_.get(), .events = POLLIN, .revents = 0}};
    for (const Silent& silent : silent_) {
      polls.push_back({.fd = silent.fd.get(), .events = POLLIN, .revents = 0});
      wake_ns = std::min(wake_ns, silent.until_ns);
    }
    const int64_t wait_ns = std::max<int64_t>(wake_ns - now_ns, 0);
    if (poll(polls.data(), polls.size(), static_cast<int>(wait_ns / 1'000'000) + 1) < 0) {
      return absl::OkStatus();  // interrupted
    }
    size_t i = 1;
    for (auto silent = silent_.begin(); silent != silent_.end(); ++i) {
      const bool speaks = polls[i].revents != 0;
      if (speaks) SYNCOPATE_RETURN_IF_ERROR(Answer(*silent));
      const bool over = speaks || clock_.NowNs() >= silent->until_ns;
      silent = over ? silent_.erase(silent) : std::next(silent);
    }
    if (polls[0].revents != 0) Accept();
    return absl::OkStatus();
  }

  void Accept() {
    UniqueFd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!fd.ok()) {
      if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED) return;
      // Out of descriptors: the connection waits on, and would be told of again at once.
      if (silent_.empty()) {
        accept_again_ns_ = clock_.NowNs() + kPauseNs;
      } else {
        silent_.pop_front();
      }
      return;
    }
    absl::StatusOr<ucred> peer = CheckUser(fd.get());
    if (!peer.ok()) return TurnAway(peer.status());
    if (silent_.size() >= kSilentMax) silent_.pop_front();
    silent_.push_back({std::move(fd), *peer, clock_.NowNs() + kHelloNs});
  }

  absl::Status Answer(const Silent& silent) {
    absl::StatusOr<Greeting> greeting = ReceiveHello(silent.fd.get(), silent.peer, 0);
    absl::Status status = greeting.status();
    if (status.ok()) status = SendHello(silent.fd.get(), hello_, spec_, process_);
    if (!status.ok()) {  // it was not a worker of this job, or is gone
      TurnAway(status);
      return absl::OkStatus();
    }
    const int rank = greeting->hello.rank;
    return Admit(*std::move(greeting), rank);
  }

  static void TurnAway(const absl::Status& why) {
    Log(LogLevel::kInfo, "turned a connection away: ", why.message());
  }

  absl::Status Admit(Greeting greeting, int rank) {
    const HelloMessage& hello = greeting.hello;
    if (hello.job_high != job_.high || hello.job_low != job_.low || hello.rank != rank ||
        rank < 0 || rank >= spec_.size || rank == spec_.rank) {
      return absl::FailedPreconditionError(absl::StrCat(
          "a worker says it is rank ", hello.rank, " of another job or beyond this one's size"));
    }
    if (hello.size != spec_.size) {
      return absl::FailedPreconditionError(
          absl::StrCat("rank ", spec_.Name(rank), " believes in a job of ", hello.size,
                       " workers, rank ", spec_.Name(spec_.rank), " in one of ", spec_.size));
    }
    const bool shares_memory = spec_.control_fd >= 0;
    if (hello.control_bytes != sizeof(Control) || (greeting.fds > 0) != shares_memory) {
      return absl::FailedPreconditionError(
          absl::StrCat("rank ", spec_.Name(rank), " runs another version of Syncopate"));
    }
    peers_[static_cast<size_t>(rank)] = std::move(greeting.introduction);
    met_.insert(rank);
    return absl::OkStatus();
  }

  std::vector<int> Missing() const {
    std::vector<int> missing;
    for (int rank = 0; rank < spec_.size; ++rank) {
      if (rank != spec_.rank && met_.count(rank) == 0) missing.push_back(rank);
    }
    return missing;
  }

  // Now and then the first of those that are there says who is missing.
  void TellWaiting() {
    if (!notice_.Due(clock_.NowNs())) return;
    const std::set<int> there = Listening(job_, spec_.size);
    if (!there.empty() && *there.begin() < spec_.rank) return;
    std::vector<int> missing = Missing();
    std::erase_if(missing, [&](int rank) { return there.count(rank) > 0; });
    if (missing.empty()) return;  // they are just meeting
    Log(LogLevel::kWarn, "waiting for ", missing.size() == 1 ? "rank " : "ranks ",
        FormatRanks(Names(missing)));
  }

  std::vector<int> Names(std::vector<int> ranks) const {
    for (int& rank : ranks) rank = spec_.Name(rank);
    return ranks;
  }

  absl::Status TooLate() const {
    const std::vector<int> missing = Names(Missing());
    return WithBlast(absl::DeadlineExceededError(
                         absl::StrCat("workers ", FormatRanks(missing), " of job \"", spec_.job,
                                      "\" did not come in time; were all ", spec_.size,
                                      " started, on this host and by the same user?")),
                     BlastRadius::kJob, missing.empty() ? -1 : missing.front());
  }

  // Not negative, and at most a minute, so that it fits poll(); the caller looks again.
  int64_t LeftNs() const {
    return std::clamp<int64_t>(deadline_ns_ - clock_.NowNs(), 0, 60'000'000'000);
  }

  const IntroductionSpec& spec_;
  const Clock& clock_;
  const int64_t deadline_ns_;
  const Digest job_;
  const HelloMessage hello_;
  const UniqueFd process_;  // a pidfd of this process
  WaitNotice notice_;
  UniqueFd listener_;
  std::list<Silent> silent_;  // oldest first
  int64_t accept_again_ns_ = 0;
  std::set<int> met_;
  std::vector<Introduction> peers_;
};

}  // namespace

absl::StatusOr<std::vector<Introduction>> MeetPeers(const IntroductionSpec& spec,
                                                    const Clock& clock, int64_t deadline_ns) {
  if (spec.text.size() > kTextBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat("a worker's text of ", spec.text.size(),
                                                   " bytes is longer than ", kTextBytesMax));
  }
  return Meeting(spec, clock, deadline_ns).Run();
}

}  // namespace syncopate::transport::shm
