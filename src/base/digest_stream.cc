#include "base/digest_stream.h"

#include <xxhash.h>

namespace syncopate {

struct DigestStream::State {
  XXH3_state_t* const hash = XXH3_createState();
};

DigestStream::DigestStream() : state_(std::make_unique<State>()) {
  XXH3_128bits_reset(state_->hash);
}

DigestStream::~DigestStream() { XXH3_freeState(state_->hash); }

void DigestStream::Add(absl::string_view bytes) {
  XXH3_128bits_update(state_->hash, bytes.data(), bytes.size());
}

Digest DigestStream::Get() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(state_->hash);
  return {hash.high64, hash.low64};
}

}  // namespace syncopate
