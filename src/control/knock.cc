#include "control/knock.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <list>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/proof.h"
#include "base/status.h"
#include "control/door_handshake.h"

namespace syncopate::control {
namespace {

// How long an address has before the next one is tried too.
constexpr int64_t kNextAddressNs = 250'000'000;

// One address on its way to a welcome.
class Try {
 public:
  static absl::StatusOr<Try> Begin(const SocketAddress& address) {
    Try begun;
    SYNCOPATE_ASSIGN_OR_RETURN(begun.fd_, BeginConnect(address));
    SYNCOPATE_ASSIGN_OR_RETURN(begun.nonces_.worker, RandomBytes(kNonceBytes));
    return begun;
  }

  pollfd Wanted() const {
    const bool connecting = state_ == State::kConnecting;
    return {fd_.get(), static_cast<int16_t>(connecting ? POLLOUT : POLLIN), 0};
  }

  // To be called when what was wanted is there; true: we are welcome.
  absl::StatusOr<bool> Advance(const std::string& key) {
    switch (state_) {
      case State::kConnecting:
        SYNCOPATE_RETURN_IF_ERROR(ConnectResult(fd_.get()));
        state_ = State::kKnocked;
        SYNCOPATE_RETURN_IF_ERROR(Say(absl::StrCat(kDoorMagic, nonces_.worker)));
        return false;
      case State::kKnocked: {
        SYNCOPATE_ASSIGN_OR_RETURN(const bool full, Fill(kDoorAnswerBytes));
        if (!full) return false;
        nonces_.connection = received_.substr(0, kNonceBytes);
        nonces_.meeting = received_.substr(kNonceBytes, kNonceBytes);
        if (!DoorServerProof(nonces_).IsProvedBy(key, received_.substr(2 * kNonceBytes))) {
          return absl::PermissionDeniedError(
              "the rendezvous there has another key: it is another job's, or SYNCOPATE_KEY is "
              "wrong");
        }
        received_.clear();
        state_ = State::kProved;
        SYNCOPATE_RETURN_IF_ERROR(Say(DoorWorkerProof(nonces_).ProofBy(key)));
        return false;
      }
      case State::kProved: {
        SYNCOPATE_ASSIGN_OR_RETURN(const bool full, Fill(kProofBytes));
        if (full && !DoorWelcomeProof(nonces_).IsProvedBy(key, received_)) {
          return absl::PermissionDeniedError(
              "the rendezvous there says a welcome that is not its own");
        }
        return full;
      }
    }
    return absl::InternalError("no such state");
  }

  Welcome Take() && { return {std::move(fd_), std::move(nonces_.meeting)}; }

 private:
  enum class State { kConnecting, kKnocked, kProved };

  absl::Status Say(absl::string_view bytes) {
    if (SayAtDoor(fd_.get(), bytes)) return absl::OkStatus();
    return absl::UnavailableError(absl::StrCat("cannot send: ", std::strerror(errno)));
  }

  // Whether `count` bytes are there. Never reads more: what follows belongs to gRPC.
  absl::StatusOr<bool> Fill(size_t count) {
    char buffer[kDoorAnswerBytes];
    const ssize_t got = recv(fd_.get(), buffer, count - received_.size(), 0);
    if (got == 0) return absl::UnavailableError("the other side has closed the connection");
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    if (got < 0)
      return absl::UnavailableError(absl::StrCat("cannot receive: ", std::strerror(errno)));
    received_.append(buffer, static_cast<size_t>(got));
    return received_.size() == count;
  }

  UniqueFd fd_;
  State state_ = State::kConnecting;
  DoorNonces nonces_;
  std::string received_;
};

}  // namespace

absl::StatusOr<Welcome> KnockAtAny(const std::vector<SocketAddress>& addresses,
                                   const std::string& key, const Clock& clock,
                                   int64_t deadline_ns) {
  // All of them are under way when half of the time has passed.
  const int64_t left_ns = std::max<int64_t>(deadline_ns - clock.NowNs(), 0);
  const int64_t count = static_cast<int64_t>(addresses.size());
  const int64_t pause_ns = std::min(kNextAddressNs, left_ns / 2 / std::max<int64_t>(count, 1));
  absl::Status last = absl::NotFoundError("it has no address");
  std::list<Try> tries;
  auto next = addresses.begin();
  int64_t next_ns = 0;  // when the next one is due
  while (next != addresses.end() || !tries.empty()) {
    const int64_t now_ns = clock.NowNs();
    if (now_ns >= deadline_ns) return absl::DeadlineExceededError("no answer in time");
    if (next != addresses.end() && now_ns >= next_ns) {
      absl::StatusOr<Try> begun = Try::Begin(*next++);
      if (begun.ok()) tries.push_back(*std::move(begun));
      if (!begun.ok()) last = begun.status();
      next_ns = begun.ok() ? now_ns + pause_ns : 0;
      continue;
    }
    std::vector<pollfd> polls;
    for (const Try& each : tries) polls.push_back(each.Wanted());
    const int64_t wake_ns = next == addresses.end() ? deadline_ns : std::min(deadline_ns, next_ns);
    const int64_t wait_ms = (wake_ns - now_ns + 999'999) / 1'000'000;
    if (poll(polls.data(), polls.size(), static_cast<int>(std::min<int64_t>(wait_ms, 60'000))) <
        0) {
      continue;
    }
    size_t i = 0;
    for (auto each = tries.begin(); each != tries.end(); ++i) {
      absl::StatusOr<bool> welcome = polls[i].revents == 0 ? false : each->Advance(key);
      if (welcome.ok() && *welcome) return std::move(*each).Take();
      if (!welcome.ok()) {
        last = welcome.status();
        next_ns = 0;
      }
      each = welcome.ok() ? std::next(each) : tries.erase(each);
    }
  }
  return last;
}

absl::StatusOr<Welcome> Knock(const std::string& server, const std::string& key, const Clock& clock,
                              int64_t deadline_ns) {
  SYNCOPATE_ASSIGN_OR_RETURN(const auto where, SplitAddress(server));
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<SocketAddress> addresses,
                             Resolve(where.first, where.second, clock, deadline_ns));
  return KnockAtAny(addresses, key, clock, deadline_ns);
}

}  // namespace syncopate::control
