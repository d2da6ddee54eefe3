#include "control/job_key.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/proof.h"
#include "base/status.h"
#include "base/unique_fd.h"

namespace syncopate::control {
namespace {

constexpr size_t kKeyFileBytesMax = 128;  // 64 digits, and white space

constexpr char kRemedy[] =
    "give all workers the same SYNCOPATE_KEY (openssl rand -hex 32 makes one), or "
    "SYNCOPATE_KEY_FILE "
    "with the path of a file that holds it";

// The descriptor is opened first and looked at then, so that nobody can put another file there in
// between. Nothing that is not a regular file can hold it up.
absl::StatusOr<std::string> ReadSecretFile(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  if (!fd.ok() && errno == ELOOP) {
    return absl::InvalidArgumentError("it is a symbolic link; name the regular file itself");
  }
  if (!fd.ok())
    return absl::InvalidArgumentError(absl::StrCat("cannot open it: ", strerror(errno)));
  struct stat facts = {};
  if (fstat(fd.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) {
    return absl::InvalidArgumentError("it is not a regular file");
  }
  if (facts.st_uid != geteuid()) {
    return absl::InvalidArgumentError("it belongs to another user; use a file of your own");
  }
  const mode_t mode = facts.st_mode & 07777;
  if (mode != 0600 && mode != 0400) {
    return absl::InvalidArgumentError(
        absl::StrFormat("its mode is %04o; make it 0600 or 0400 (chmod 600)", mode));
  }
  std::string text(kKeyFileBytesMax + 1, '\0');
  const ssize_t bytes = read(fd.get(), text.data(), text.size());
  if (bytes < 0)
    return absl::InvalidArgumentError(absl::StrCat("cannot read it: ", strerror(errno)));
  text.resize(static_cast<size_t>(bytes));
  if (text.size() > kKeyFileBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat("it is longer than ", kKeyFileBytesMax,
                                                   " bytes; it must hold a key and nothing else"));
  }
  return std::string(absl::StripAsciiWhitespace(text));
}

}  // namespace

const char* const kKeyRemedy = kRemedy;

absl::StatusOr<std::string> GivenKey(const Environment& environment) {
  const std::string text = environment("SYNCOPATE_KEY").value_or("");
  if (!text.empty()) {
    absl::StatusOr<std::string> key = ParseKey(text);
    return key.ok() ? key : At("SYNCOPATE_KEY", key.status());
  }
  const std::string path = environment("SYNCOPATE_KEY_FILE").value_or("");
  if (path.empty()) return std::string();
  const std::string place = absl::StrCat("SYNCOPATE_KEY_FILE=", path);
  absl::StatusOr<std::string> secret = ReadSecretFile(path);
  if (!secret.ok()) return At(place, secret.status());
  absl::StatusOr<std::string> key = ParseKey(*secret);
  return key.ok() ? key : At(place, key.status());
}

absl::Status CheckKeyMayBePublic(const std::string& reason) {
  if (reason.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(reason, ", but the key of this job would be made of public values; ", kRemedy));
}

}  // namespace syncopate::control
