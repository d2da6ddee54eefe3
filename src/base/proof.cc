#include "base/proof.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>

#include <algorithm>
#include <cctype>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace syncopate {

ProofText& ProofText::Add(absl::string_view field) {
  AddNumber(static_cast<int64_t>(field.size()));
  absl::StrAppend(&bytes_, field);
  return *this;
}

ProofText& ProofText::AddNumber(int64_t number) {
  const uint64_t bits = static_cast<uint64_t>(number);
  for (int shift = 0; shift < 64; shift += 8) bytes_.push_back(static_cast<char>(bits >> shift));
  return *this;
}

std::string ProofText::ProofBy(absl::string_view key) const {
  unsigned char proof[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
       reinterpret_cast<const unsigned char*>(bytes_.data()), bytes_.size(), proof, &size);
  return std::string(reinterpret_cast<const char*>(proof), size);
}

bool ProofText::IsProvedBy(absl::string_view key, absl::string_view proof) const {
  const std::string expected = ProofBy(key);
  return expected.size() == kProofBytes && proof.size() == kProofBytes &&
         CRYPTO_memcmp(expected.data(), proof.data(), kProofBytes) == 0;
}

absl::StatusOr<std::string> RandomBytes(size_t count) {
  std::string bytes(count, '\0');
  for (size_t done = 0; done < count;) {
    const ssize_t got = getrandom(bytes.data() + done, count - done, 0);
    if (got <= 0) return absl::UnavailableError("the system gives no random numbers; try again");
    done += static_cast<size_t>(got);
  }
  return bytes;
}

std::string FormatKey(absl::string_view key) { return absl::BytesToHexString(key); }

absl::StatusOr<std::string> ParseKey(absl::string_view text) {
  const bool hexadecimal = std::all_of(text.begin(), text.end(), [](char c) {
    return std::isxdigit(static_cast<unsigned char>(c));
  });
  if (text.size() != 2 * kKeyBytes || !hexadecimal) {
    return absl::InvalidArgumentError(
        absl::StrCat("a key of ", text.size(), " characters; it must be ", 2 * kKeyBytes,
                     " hexadecimal digits, as openssl rand -hex 32 makes them"));
  }
  return absl::HexStringToBytes(text);
}

}  // namespace syncopate
