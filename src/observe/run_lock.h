// Keeps a run's folder for one run at a time, by a lock on run.lock in it.
//
// The lock is one of the operating system (flock): it goes with the last process that has it, however
// that ends, so a run that crashed blocks nobody. Processes that are started meanwhile inherit it:
// the folder stays taken until the workers of a killed command have ended, too. The file itself,
// which holds the number of the process, is removed at the end.
#ifndef SYNCOPATE_OBSERVE_RUN_LOCK_H_
#define SYNCOPATE_OBSERVE_RUN_LOCK_H_

#include <string>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace syncopate::observe {

// Move-only.
class RunLock {
 public:
  // Makes the folder if need be. InvalidArgument, with the number of the process, if a run is under
  // way in it.
  static absl::StatusOr<RunLock> Take(const std::string& run_path);
  // Makes a new folder, STEM-1 or the first number that nobody has.
  static absl::StatusOr<RunLock> TakeNew(const std::string& stem);
  RunLock(RunLock&& other) noexcept = default;
  RunLock& operator=(RunLock&&) = delete;
  ~RunLock();  // a folder that it has made and that is empty still is removed

  const std::string& path() const { return path_; }

 private:
  RunLock(std::string path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  std::string path_;
  UniqueFd fd_;
  bool made_ = false;
};

}  // namespace syncopate::observe

#endif  // SYNCOPATE_OBSERVE_RUN_LOCK_H_
