// The handshake: what strangers say first.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "transport/net/handshake.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace syncopate::net;
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto greeting = DecodeGreeting(bytes);
  if (greeting.ok() && Encode(*greeting) != bytes) std::abort();
  const std::string key(32, 'k'), nonce(kNonceBytes, 'n'), hello(kGreetingBytes, 'g');
  if (MakeProof(key, hello, bytes).ok()) std::abort();  // nobody guesses a proof
  if (ProofIsRight(key, hello, nonce, bytes)) std::abort();
  return 0;
}
