// The handshake: what strangers say first.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "transport/net/handshake.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace syncopate;
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto greeting = transport::net::DecodeGreeting(bytes);
  if (greeting.ok() && Encode(*greeting) != bytes) std::abort();
  const std::string key(32, 'k'), nonce(transport::net::kNonceBytes, 'n'),
      hello(transport::net::kGreetingBytes, 'g');
  if (transport::net::MakeProof(key, hello, bytes).ok()) std::abort();  // nobody guesses a proof
  if (transport::net::ProofIsRight(key, hello, nonce, bytes)) std::abort();
  if (transport::net::LastWordIsRight(key, hello, nonce, bytes)) std::abort();
  return 0;
}
