#include "control/door_handshake.h"

#include <sys/socket.h>

namespace syncopate::control {
namespace {

ProofText ProofOf(absl::string_view purpose, const DoorNonces& nonces) {
  return ProofText(purpose).Add(nonces.worker).Add(nonces.connection).Add(nonces.meeting);
}

}  // namespace

ProofText DoorServerProof(const DoorNonces& nonces) {
  return ProofOf("syncopate door server", nonces);
}
ProofText DoorWorkerProof(const DoorNonces& nonces) {
  return ProofOf("syncopate door worker", nonces);
}
ProofText DoorWelcomeProof(const DoorNonces& nonces) {
  return ProofOf("syncopate door welcome", nonces);
}

bool SayAtDoor(int fd, absl::string_view bytes) {
  return send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT) ==
         static_cast<ssize_t>(bytes.size());
}

}  // namespace syncopate::control
