#include "tools/bench/workspace.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace syncopate::tools::bench {
namespace {

namespace fs = std::filesystem;
constexpr const char* kPrefix = "syncopate-bench-";
constexpr const char* kLockName = "lock";

// Removes folders of dead benchmarks of this user. What cannot be removed is not our business now.
void RemoveAbandoned(const std::string& base) {
  std::error_code error;
  for (fs::directory_iterator it(base, error), end; !error && it != end; it.increment(error)) {
    const fs::path& path = it->path();
    struct stat info;
    if (!absl::StartsWith(path.filename().string(), kPrefix) || lstat(path.c_str(), &info) != 0 ||
        !S_ISDIR(info.st_mode) || info.st_uid != geteuid()) {
      continue;
    }
    const UniqueFd lock(open((path / kLockName).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
    if (!lock.ok()) continue;  // being made just now
    if (flock(lock.get(), LOCK_EX | LOCK_NB) == 0) {
      std::error_code ignored;
      fs::remove_all(path, ignored);
    }
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Workspace>> Workspace::Make(const std::string& base) {
  RemoveAbandoned(base);
  std::string path = absl::StrCat(base, "/", kPrefix, "XXXXXX");
  if (mkdtemp(path.data()) == nullptr) {
    return absl::UnavailableError(
        absl::StrCat("cannot make a folder in ", base, ": ", std::strerror(errno)));
  }
  UniqueFd lock(open(absl::StrCat(path, "/", kLockName).c_str(),
                     O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!lock.ok() || flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    std::error_code ignored;
    fs::remove_all(path, ignored);
    return absl::UnavailableError(absl::StrCat("cannot lock ", path, ": ", std::strerror(error)));
  }
  return std::unique_ptr<Workspace>(new Workspace(std::move(path), std::move(lock)));
}

Workspace::~Workspace() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

absl::StatusOr<std::string> Workspace::MakeFolder(const std::string& name) {
  std::string folder = absl::StrCat(path_, "/", name);
  if (mkdir(folder.c_str(), 0700) != 0) {
    return absl::UnavailableError(absl::StrCat("cannot make ", folder, ": ", std::strerror(errno)));
  }
  return folder;
}

std::string Workspace::LabName() const {
  return absl::StrCat("bench-", path_.substr(path_.rfind('-') + 1));
}

std::string ScratchBase(const Environment& environment) {
  if (const std::optional<std::string> wanted = environment("TMPDIR")) return *wanted;
  return access("/dev/shm", W_OK | X_OK) == 0 ? "/dev/shm" : "/tmp";
}

}  // namespace syncopate::tools::bench
