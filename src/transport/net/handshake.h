// Proves on a new connection that both ends know the job's key, before anything else is said.
//
//   connector  greeting   who I am, whom I want, a nonce
//   acceptor   answer     its own nonce, its proof over "acceptor", the greeting and that nonce
//   connector  proof      its proof over "connector" and the same
//   acceptor   last word  its proof over "accepted" and the same
//
// All four have fixed sizes: an acceptor reads at most 72 bytes from somebody it does not know.
//
// The acceptor has the connection when it has sent its last word, the connector when it has read
// it. An acceptor that has lost its patience hangs up instead, and the connector calls again. A
// connector that has sent its proof does not hang up by itself: the acceptor may have accepted it,
// and have closed its door behind the last one that it waited for.
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

// What the acceptor says in the end, and whether that is right.
std::string MakeLastWord(absl::string_view key, absl::string_view greeting,
                         absl::string_view nonce);
bool LastWordIsRight(absl::string_view key, absl::string_view greeting, absl::string_view nonce,
                     absl::string_view last_word);

// Random bytes from the system.
absl::StatusOr<std::string> MakeNonce();

}  // namespace syncopate::transport::net

#endif  // SYNCOPATE_TRANSPORT_NET_HANDSHAKE_H_
