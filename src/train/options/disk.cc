#include "train/options/disk.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/parse.h"
#include "base/unique_fd.h"

namespace syncopate::train {
namespace {

namespace fs = std::filesystem;

absl::Status Failed(absl::string_view what, absl::string_view path, int error) {
  return absl::UnavailableError(
      absl::StrCat("cannot ", what, " ", path, ": ", std::strerror(error)));
}

bool WriteAll(const UniqueFd& fd, absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote = write(fd.get(), bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(wrote));
  }
  return true;
}

class FileSystem final : public Disk {
 public:
  // Forces to disk what it makes: nobody else does so for folders above a run's.
  absl::Status MakeFolder(const std::string& path) override {
    std::error_code error;
    if (fs::is_directory(path, error)) return absl::OkStatus();
    const fs::path above = fs::path(path).parent_path();
    if (!above.empty()) {
      if (absl::Status status = MakeFolder(above.string()); !status.ok()) return status;
    }
    fs::create_directory(path, error);  // not an error if another worker was faster
    if (error) return Failed("make folder", path, error.value());
    return Sync(above.empty() ? "." : above.string());
  }

  absl::Status Write(const std::string& path, absl::string_view bytes) override {
    const UniqueFd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (fd.ok() && WriteAll(fd, bytes)) return absl::OkStatus();
    return Failed("write", path, errno);
  }

  absl::Status Sync(const std::string& path) override {
    const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (fd.ok() && fsync(fd.get()) == 0) return absl::OkStatus();
    // Some network file systems do not force folders to disk: they keep names by other means.
    std::error_code ignored;
    if (fd.ok() && errno == EINVAL && fs::is_directory(path, ignored)) return absl::OkStatus();
    return absl::UnavailableError(
        absl::StrCat("cannot force ", path, " to disk: ", std::strerror(errno)));
  }

  absl::Status Rename(const std::string& from, const std::string& to) override {
    if (std::rename(from.c_str(), to.c_str()) == 0) return absl::OkStatus();
    return Failed("write", to, errno);
  }

  absl::Status Remove(const std::string& path) override {
    std::error_code error;
    fs::remove_all(path, error);
    if (error) return Failed("remove", path, error.value());
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> Read(const std::string& path, uint64_t bytes_max) override {
    return ReadFile(path, bytes_max);
  }

  std::vector<std::string> List(const std::string& folder) override {
    std::vector<std::string> names;
    std::error_code error;
    for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
      names.push_back(at->path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }
};

}  // namespace

absl::Status WriteDurably(const std::string& path, absl::string_view bytes, Disk& disk) {
  const std::string beside = absl::StrCat(path, ".tmp", getpid());
  absl::Status status = disk.Write(beside, bytes);
  if (status.ok()) status = disk.Sync(beside);
  if (status.ok()) status = disk.Rename(beside, path);
  if (status.ok()) return disk.Sync(fs::path(path).parent_path().string());
  disk.Remove(beside).IgnoreError();
  return status;
}

Disk& RealDisk() {
  static auto* const disk = new FileSystem;
  return *disk;
}

}  // namespace syncopate::train
