#include "transport/net/handshake.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/bytes.h"
#include "base/proof.h"

namespace syncopate::transport::net {
namespace {

constexpr uint64_t kHandshakeMagic = 0x32304f434e5953;  // "SYNCO02"

ProofText TextOf(absl::string_view who, absl::string_view greeting, absl::string_view nonce) {
  return ProofText(who).Add(greeting).Add(nonce);
}

}  // namespace

std::string Encode(const Greeting& greeting) {
  std::string bytes;
  Append(bytes, kHandshakeMagic);
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
  if (reader.Read<uint64_t>() != kHandshakeMagic) {
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
  return absl::StrCat(nonce, TextOf("acceptor", greeting, nonce).ProofBy(key));
}

absl::StatusOr<std::string> MakeProof(absl::string_view key, absl::string_view greeting,
                                      absl::string_view answer) {
  if (answer.size() != kAnswerBytes) return absl::InvalidArgumentError("an answer cut short");
  const absl::string_view nonce = answer.substr(0, kNonceBytes);
  if (!TextOf("acceptor", greeting, nonce).IsProvedBy(key, answer.substr(kNonceBytes))) {
    return absl::PermissionDeniedError("the other end does not know the job's key");
  }
  return TextOf("connector", greeting, nonce).ProofBy(key);
}

bool ProofIsRight(absl::string_view key, absl::string_view greeting, absl::string_view nonce,
                  absl::string_view proof) {
  return TextOf("connector", greeting, nonce).IsProvedBy(key, proof);
}

std::string MakeLastWord(absl::string_view key, absl::string_view greeting,
                         absl::string_view nonce) {
  return TextOf("accepted", greeting, nonce).ProofBy(key);
}

bool LastWordIsRight(absl::string_view key, absl::string_view greeting, absl::string_view nonce,
                     absl::string_view last_word) {
  return TextOf("accepted", greeting, nonce).IsProvedBy(key, last_word);
}

absl::StatusOr<std::string> MakeNonce() { return RandomBytes(kNonceBytes); }

}  // namespace syncopate::transport::net
