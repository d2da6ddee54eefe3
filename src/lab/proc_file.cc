#include "lab/proc_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/unique_fd.h"

namespace syncopate::lab {
namespace {

constexpr size_t kBytesMax = size_t{16} << 20;

}  // namespace

absl::StatusOr<std::string> ReadProcFile(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.ok()) return absl::NotFoundError(absl::StrCat(path, ": ", strerror(errno)));
  std::string text;
  char buffer[1 << 14];
  while (text.size() < kBytesMax) {
    const ssize_t count = read(fd.get(), buffer, sizeof(buffer));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return absl::UnavailableError(absl::StrCat(path, ": ", strerror(errno)));
    if (count == 0) break;
    text.append(buffer, static_cast<size_t>(count));
  }
  return text;
}

absl::Status WriteProcFile(const std::string& path, absl::string_view text) {
  const UniqueFd fd(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd.ok() || write(fd.get(), text.data(), text.size()) < 0) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": \"", text, "\" cannot be written: ", strerror(errno)));
  }
  return absl::OkStatus();
}

}  // namespace syncopate::lab
