#include "observe/run_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/parse.h"
#include "base/status.h"

namespace syncopate::observe {
namespace {

namespace fs = std::filesystem;

constexpr int kNumberMax = 1'000'000;
constexpr int64_t kPidMax = int64_t{1} << 31;

std::string LockPath(const std::string& run_path) { return absl::StrCat(run_path, "/run.lock"); }

absl::Status CannotMake(const std::string& path, const std::error_code& error) {
  return absl::InvalidArgumentError(absl::StrCat("cannot make the run directory ", path, ": ",
                                                 error.message(), "; --run names another"));
}

// Who has the lock, for people; it may be about to write its number.
absl::Status UnderWay(const std::string& run_path, int fd) {
  char text[32] = {};
  const ssize_t count = pread(fd, text, sizeof(text) - 1, 0);
  const absl::StatusOr<int64_t> pid = ParseInt(
      absl::StripSuffix(absl::string_view(text, count > 0 ? static_cast<size_t>(count) : 0), "\n"),
      1, kPidMax);
  return absl::InvalidArgumentError(
      absl::StrCat("run ", fs::path(run_path).filename().string(), " is under way",
                   pid.ok() ? absl::StrCat(", pid ", *pid) : "", "; wait for its end, or choose ",
                   "another name by --run"));
}

// Whether the file that was locked is still the one of that name: its last owner may have removed it
// between our open() and our flock().
bool IsStillThere(int fd, const std::string& path) {
  struct stat locked, named;
  return fstat(fd, &locked) == 0 && stat(path.c_str(), &named) == 0 &&
         locked.st_ino == named.st_ino && locked.st_dev == named.st_dev;
}

}  // namespace

absl::StatusOr<RunLock> RunLock::Take(const std::string& run_path) {
  std::error_code error;
  const bool made = fs::create_directories(run_path, error);
  if (error) return CannotMake(run_path, error);
  const std::string path = LockPath(run_path);
  while (true) {
    // Not closed on exec: the job's processes keep the folder, too.
    UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT, 0644));
    if (!fd.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("cannot write ", path, ": ", std::strerror(errno)));
    }
    if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EINTR) continue;
      if (errno == EWOULDBLOCK) return UnderWay(run_path, fd.get());
      return absl::UnavailableError(absl::StrCat("cannot lock ", path, ": ", std::strerror(errno)));
    }
    if (!IsStillThere(fd.get(), path)) continue;
    const std::string pid = absl::StrCat(getpid(), "\n");
    if (ftruncate(fd.get(), 0) != 0 ||
        pwrite(fd.get(), pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size())) {
      return absl::UnavailableError(
          absl::StrCat("cannot write ", path, ": ", std::strerror(errno)));
    }
    RunLock lock(run_path, std::move(fd));
    lock.made_ = made;
    return lock;
  }
}

absl::StatusOr<RunLock> RunLock::TakeNew(const std::string& stem) {
  std::error_code error;
  fs::create_directories(fs::path(stem).parent_path(), error);
  for (int number = 1; !error && number <= kNumberMax; ++number) {
    const std::string path = absl::StrCat(stem, "-", number);
    if (!fs::create_directory(path, error)) continue;  // of two processes only one makes it
    SYNCOPATE_ASSIGN_OR_RETURN(RunLock lock, Take(path));
    lock.made_ = true;
    return lock;
  }
  return CannotMake(absl::StrCat(stem, "-1"), error);
}

RunLock::~RunLock() {
  if (!fd_.ok()) return;  // moved away
  unlink(LockPath(path_).c_str());
  if (made_) rmdir(path_.c_str());  // only if nothing is in it
}

}  // namespace syncopate::observe
