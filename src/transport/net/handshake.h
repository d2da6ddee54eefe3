// Proves on a new connection that both ends know the job's key, before anything else is said.
//
//   connector  greeting   who I am, whom I want, a nonce
//   acceptor   answer     its own nonce, its proof over "acceptor", the greeting and that nonce
//   connector  proof      its proof over "connector" and the same
//
// All three have fixed sizes: an acceptor reads at most 72 bytes from somebody it does not know.
#ifndef SYNCOPATE_TRANSPORT_NET_HANDSHAKE_H_
#define SYNCOPATE_TRANSPORT_NET_HANDSHAKE_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/proof.h"

namespace syncopate::transport::net {

inline constexpr size_t kNonceBytes = 16;
inline constexpr size_t kGreetingBytes = 40;
inline constexpr size_t kAnswerBytes = kNonceBytes + kProofBytes;

struct Greeting {
  uint32_t job = 0;
  uint32_t from = 0;  // ranks
  uint32_t to = 0;
  uint32_t lane = 0;  // which of several connections between the two
  std::string nonce;  // kNonceBytes

  friend bool operator==(const Greeting&, const Greeting&) = default;
};

std::string Encode(const Greeting& greeting);
absl::StatusOr<Greeting> DecodeGreeting(absl::string_view bytes);

// What the acceptor answers.
std::string MakeAnswer(absl::string_view key, absl::string_view greeting, absl::string_view nonce);
// What the connector sends back, or PermissionDenied if the answer does not prove the key.
absl::StatusOr<std::string> MakeProof(absl::string_view key, absl::string_view greeting,
                                      absl::string_view answer);
// Whether a proof is right for the greeting and the acceptor's nonce.
bool ProofIsRight(absl::string_view key, absl::string_view greeting, absl::string_view nonce,
                  absl::string_view proof);

// Random bytes from the system.
absl::StatusOr<std::string> MakeNonce();

}  // namespace syncopate::transport::net

#endif  // SYNCOPATE_TRANSPORT_NET_HANDSHAKE_H_
