// The digest (base/digest.h) of bytes that come piece by piece: what they together would have, without their
// being in one place.
#ifndef SYNCOPATE_BASE_DIGEST_STREAM_H_
#define SYNCOPATE_BASE_DIGEST_STREAM_H_

#include <memory>

#include "absl/strings/string_view.h"
#include "base/digest.h"

namespace syncopate {

// Not thread-safe.
class DigestStream {
 public:
  DigestStream();
  ~DigestStream();
  DigestStream(const DigestStream&) = delete;

  void Add(absl::string_view bytes);
  // Of all that was added.
  Digest Get() const;

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace syncopate

#endif  // SYNCOPATE_BASE_DIGEST_STREAM_H_
