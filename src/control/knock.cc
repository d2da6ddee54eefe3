#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/proof.h"
#include "base/status.h"
#include "control/door_handshake.h"
#include "control/knock.h"

namespace syncopate::control {
namespace {

absl::StatusOr<Welcome> KnockAt(const SocketAddress& address, const std::string& key,
                                const Clock& clock, int64_t deadline_ns) {
  Welcome welcome;
  SYNCOPATE_ASSIGN_OR_RETURN(welcome.fd, ConnectTo(address, clock, deadline_ns));
  DoorNonces nonces;
  SYNCOPATE_ASSIGN_OR_RETURN(nonces.worker, RandomBytes(kNonceBytes));
  const int fd = welcome.fd.get();
  SYNCOPATE_RETURN_IF_ERROR(
      SendAll(fd, absl::StrCat(kDoorMagic, nonces.worker), clock, deadline_ns));
  SYNCOPATE_ASSIGN_OR_RETURN(const std::string answer,
                             ReceiveExactly(fd, kDoorAnswerBytes, clock, deadline_ns));
  nonces.connection = answer.substr(0, kNonceBytes);
  nonces.meeting = answer.substr(kNonceBytes, kNonceBytes);
  if (!DoorServerProof(nonces).IsProvedBy(key, answer.substr(2 * kNonceBytes))) {
    return absl::PermissionDeniedError(
        "the rendezvous there has another key: it is another job's, or SYNCOPATE_KEY is wrong");
  }
  SYNCOPATE_RETURN_IF_ERROR(SendAll(fd, DoorWorkerProof(nonces).ProofBy(key), clock, deadline_ns));
  SYNCOPATE_ASSIGN_OR_RETURN(const std::string last_word,
                             ReceiveExactly(fd, kProofBytes, clock, deadline_ns));
  if (!DoorWelcomeProof(nonces).IsProvedBy(key, last_word)) {
    return absl::PermissionDeniedError("the rendezvous there says a welcome that is not its own");
  }
  welcome.meeting_nonce = nonces.meeting;
  return welcome;
}

}  // namespace

absl::StatusOr<Welcome> KnockAtAny(const std::vector<SocketAddress>& addresses,
                                   const std::string& key, const Clock& clock,
                                   int64_t deadline_ns) {
  absl::Status last = absl::NotFoundError("it has no address");
  for (const SocketAddress& address : addresses) {
    auto welcome = KnockAt(address, key, clock, deadline_ns);
    if (welcome.ok()) return welcome;
    last = welcome.status();
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
