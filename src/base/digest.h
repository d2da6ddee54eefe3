// Digests of values: peers compare them before they run or switch to a value. They guard against
// mistakes, not against an adversary.
#ifndef SYNCOPATE_BASE_DIGEST_H_
#define SYNCOPATE_BASE_DIGEST_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace syncopate {

struct Digest {
  uint64_t high = 0;
  uint64_t low = 0;

  friend bool operator==(const Digest&, const Digest&) = default;
  std::string ToString() const;  // 32 hexadecimal digits
};

// The digest of a run of bytes (XXH3, 128 bit).
Digest DigestOf(absl::string_view bytes);

}  // namespace syncopate

#endif  // SYNCOPATE_BASE_DIGEST_H_
