#include "transport/net/handshake.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "transport/net/bytes.h"

namespace syncopate::net {
namespace {

constexpr uint64_t kMagic = 0x31304f434e5953;  // "SYNCO01"

std::string Hmac(absl::string_view key, absl::string_view text) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int bytes = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest, &bytes);
  return std::string(reinterpret_cast<const char*>(digest), bytes);
}

bool Same(absl::string_view a, absl::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string ProofBy(absl::string_view who, absl::string_view key, absl::string_view greeting,
                    absl::string_view nonce) {
  return Hmac(key, absl::StrCat(who, greeting, nonce));
}

}  // namespace

std::string Encode(const Greeting& greeting) {
  std::string bytes;
  Append(bytes, kMagic);
  Append(bytes, greeting.job);
  Append(bytes, greeting.from);
  Append(bytes, greeting.to);
  Append(bytes, greeting.lane);
  bytes.append(greeting.nonce);
  return bytes;
}

absl::StatusOr<Greeting> DecodeGreeting(absl::string_view bytes) {
  if (bytes.size() != kGreetingBytes) return absl::InvalidArgumentError("a greeting cut short");
  ByteReader reader(bytes);
  if (reader.Read<uint64_t>() != kMagic) {
    return absl::InvalidArgumentError("this is no greeting, or one of another version");
  }
  Greeting greeting;
  greeting.job = reader.Read<uint32_t>();
  greeting.from = reader.Read<uint32_t>();
  greeting.to = reader.Read<uint32_t>();
  greeting.lane = reader.Read<uint32_t>();
  greeting.nonce = std::string(reader.ReadBytes(kNonceBytes));
  return greeting;
}

std::string MakeAnswer(absl::string_view key, absl::string_view greeting, absl::string_view nonce) {
  return absl::StrCat(nonce, ProofBy("acceptor", key, greeting, nonce));
}

absl::StatusOr<std::string> MakeProof(absl::string_view key, absl::string_view greeting,
                                      absl::string_view answer) {
  if (answer.size() != kAnswerBytes) return absl::InvalidArgumentError("an answer cut short");
  const absl::string_view nonce = answer.substr(0, kNonceBytes);
  if (!Same(ProofBy("acceptor", key, greeting, nonce), answer.substr(kNonceBytes))) {
    return absl::PermissionDeniedError("the other end does not know the job's key");
  }
  return ProofBy("connector", key, greeting, nonce);
}

bool ProofIsRight(absl::string_view key, absl::string_view greeting, absl::string_view nonce,
                  absl::string_view proof) {
  return Same(ProofBy("connector", key, greeting, nonce), proof);
}

absl::StatusOr<std::string> MakeNonce() {
  std::string nonce(kNonceBytes, '\0');
  if (getrandom(nonce.data(), nonce.size(), 0) != static_cast<ssize_t>(nonce.size())) {
    return absl::UnavailableError("the system gives no random numbers");
  }
  return nonce;
}

}  // namespace syncopate::net
