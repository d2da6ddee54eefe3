// The words that are exchanged at the door of the rendezvous (door.h), for both of its sides.
#ifndef SYNCOPATE_CONTROL_DOOR_HANDSHAKE_H_
#define SYNCOPATE_CONTROL_DOOR_HANDSHAKE_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"
#include "base/proof.h"

namespace syncopate::control {

inline constexpr absl::string_view kDoorMagic = "SYNCRDV2";
// The worker's first message, and what the server answers.
inline constexpr size_t kDoorKnockBytes = 8 + kNonceBytes;
inline constexpr size_t kDoorAnswerBytes = 2 * kNonceBytes + kProofBytes;

// All three are in every proof, so none can be shown a second time.
struct DoorNonces {
  std::string worker;
  std::string connection;
  std::string meeting;
};

// The server's in its answer, the worker's, and the server's last word.
ProofText DoorServerProof(const DoorNonces& nonces);
ProofText DoorWorkerProof(const DoorNonces& nonces);
ProofText DoorWelcomeProof(const DoorNonces& nonces);

// Sends all of it, or says that the connection is not good for it: a fresh one takes a message of
// the handshake at once.
bool SayAtDoor(int fd, absl::string_view bytes);

}  // namespace syncopate::control

#endif  // SYNCOPATE_CONTROL_DOOR_HANDSHAKE_H_
