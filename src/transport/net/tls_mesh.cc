#include "transport/net/tls_mesh.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/parse.h"
#include "base/status.h"

namespace syncopate::transport::net {
namespace {

struct TlsTalk {
  int peer = -1;
  int fd = -1;
  TlsSession* session = nullptr;
  bool proved = false;
  bool done() const { return proved && session->out().empty(); }
};

// Sends what can be sent now.
absl::Status SendOut(TlsTalk& talk) {
  while (!talk.session->out().empty()) {
    const auto out = talk.session->out();
    const ssize_t sent = send(talk.fd, out.data(), out.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) return absl::OkStatus();
    if (sent < 0) return SystemError("cannot write");
    talk.session->Gone(static_cast<size_t>(sent));
  }
  return absl::OkStatus();
}

// Does what can be done now.
absl::Status Advance(TlsTalk& talk) {
  while (!talk.proved) {
    absl::StatusOr<bool> proved = talk.session->Handshake();
    const absl::Status sent = SendOut(talk);  // a refusal too: the other end shall know why
    if (!proved.ok()) return proved.status();
    SYNCOPATE_RETURN_IF_ERROR(sent);
    talk.proved = *proved;
    if (talk.proved) break;
    const auto room = talk.session->room();
    const ssize_t got = recv(talk.fd, room.data(), room.size(), 0);
    if (got == 0) return absl::UnavailableError("the other end hung up before TLS was agreed on");
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return absl::OkStatus();
    if (got < 0) return SystemError("cannot read");
    talk.session->Came(static_cast<size_t>(got));
  }
  return SendOut(talk);
}

absl::Status TooLate(const std::vector<TlsTalk>& talks) {
  std::vector<int> missing;
  for (const TlsTalk& talk : talks) {
    if (!talk.done() && (missing.empty() || missing.back() != talk.peer)) {
      missing.push_back(talk.peer);
    }
  }
  return WithBlast(absl::DeadlineExceededError(absl::StrCat(
                       "TLS with workers ", FormatRanks(missing), " was not agreed on in time")),
                   BlastRadius::kJob, missing.empty() ? -1 : missing.front());
}

}  // namespace

absl::StatusOr<TlsMesh> SecureMesh(const std::vector<std::vector<UniqueFd>>& sockets,
                                   const MeshOptions& options, const Clock& clock,
                                   int64_t deadline_ns) {
  TlsMesh sessions(sockets.size());
  std::vector<TlsTalk> talks;
  for (size_t rank = 0; rank < sockets.size(); ++rank) {
    const int peer = static_cast<int>(rank);
    for (size_t lane = 0; lane < sockets[rank].size() && peer != options.rank; ++lane) {
      SYNCOPATE_ASSIGN_OR_RETURN(std::unique_ptr<TlsSession> session,
                                 TlsSession::Make({.key = options.key,
                                                   .job = options.job,
                                                   .connector = std::max(peer, options.rank),
                                                   .acceptor = std::min(peer, options.rank),
                                                   .lane = static_cast<int>(lane),
                                                   .is_connector = options.rank > peer}));
      talks.push_back({.peer = peer, .fd = sockets[rank][lane].get(), .session = session.get()});
      sessions[rank].push_back(std::move(session));
    }
  }
  while (true) {
    std::vector<pollfd> polls;
    for (TlsTalk& talk : talks) {
      if (talk.done()) continue;
      if (const absl::Status status = Advance(talk); !status.ok()) {
        return WithBlast(At(absl::StrCat("worker ", talk.peer), status), BlastRadius::kJob,
                         talk.peer);
      }
      if (talk.done()) continue;
      // What comes after the proof is the wire's.
      const int events = talk.proved                   ? POLLOUT
                         : talk.session->out().empty() ? POLLIN
                                                       : POLLIN | POLLOUT;
      polls.push_back({.fd = talk.fd, .events = static_cast<short>(events), .revents = 0});
    }
    if (polls.empty()) return sessions;
    const int64_t left_ns = deadline_ns - clock.NowNs();
    if (left_ns <= 0) return TooLate(talks);
    const int wait_ms = static_cast<int>(std::min<int64_t>(left_ns / 1'000'000, 1000)) + 1;
    if (poll(polls.data(), polls.size(), wait_ms) < 0 && errno != EINTR) {
      return SystemError("cannot wait for TLS");
    }
  }
}

}  // namespace syncopate::transport::net
