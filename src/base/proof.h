// Proofs that a peer knows the key of a job: HMAC-SHA256 over fields that cannot run into each
// other, and random bytes for keys and nonces.
#ifndef SYNCOPATE_BASE_PROOF_H_
#define SYNCOPATE_BASE_PROOF_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace syncopate {

inline constexpr size_t kProofBytes = 32;
inline constexpr size_t kKeyBytes = 32;
inline constexpr size_t kNonceBytes = 32;

// Collects what a proof is about. Each field carries its length, so two different lists of fields
// never give the same bytes. Not thread-safe.
class ProofText {
 public:
  // `purpose` keeps a proof made for one message from being shown as one for another.
  explicit ProofText(absl::string_view purpose) { Add(purpose); }

  ProofText& Add(absl::string_view field);
  ProofText& AddNumber(int64_t number);

  // kProofBytes bytes.
  std::string ProofBy(absl::string_view key) const;
  // Whether `proof` is the one that `key` gives; takes the same time wherever they differ.
  bool IsProvedBy(absl::string_view key, absl::string_view proof) const;

 private:
  std::string bytes_;
};

// Random bytes from the system; not for tests that must repeat.
absl::StatusOr<std::string> RandomBytes(size_t count);

// kKeyBytes bytes as 64 hexadecimal digits, and back. Errors do not repeat the text: it is secret.
std::string FormatKey(absl::string_view key);
absl::StatusOr<std::string> ParseKey(absl::string_view text);

}  // namespace syncopate

#endif  // SYNCOPATE_BASE_PROOF_H_
