#include "observe/append_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace syncopate::observe {
namespace {

absl::Status CannotWrite(const std::string& path) {
  return absl::UnavailableError(absl::StrCat("cannot write ", path, ": ", std::strerror(errno)));
}

}  // namespace

absl::StatusOr<AppendFile> AppendFile::Open(const std::string& path, bool empty) {
  AppendFile file;
  file.path_ = path;
  const int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (empty ? O_TRUNC : 0);
  file.fd_ = UniqueFd(open(path.c_str(), flags, 0644));
  struct stat info;
  if (file.fd_.get() < 0 || fstat(file.fd_.get(), &info) != 0) return CannotWrite(path);
  file.size_ = static_cast<uint64_t>(info.st_size);
  return file;
}

absl::Status AppendFile::Append(absl::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(fd_.get(), text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return CannotWrite(path_);
    size_ += static_cast<uint64_t>(written);
    text.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

absl::Status AppendFile::ReplaceEnd(uint64_t count, absl::string_view text) {
  if (count > size_) return absl::InternalError(absl::StrCat(path_, " has no ", count, " bytes"));
  if (ftruncate(fd_.get(), static_cast<off_t>(size_ - count)) != 0) return CannotWrite(path_);
  size_ -= count;
  return Append(text);
}

}  // namespace syncopate::observe
