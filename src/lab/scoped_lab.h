// A lab that is gone when its maker is, however that ends.
#ifndef SYNCOPATE_LAB_SCOPED_LAB_H_
#define SYNCOPATE_LAB_SCOPED_LAB_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/unique_fd.h"
#include "lab/lab.h"
#include "lab/spec.h"

namespace syncopate::lab {

// A child process waits for the end of this one and then takes the lab down, so that not even
// SIGKILL leaves it behind. Make it while there is only one thread. Not thread-safe.
class ScopedLab {
 public:
  // `name` must be unique on this machine. The clock must outlive the object.
  static absl::StatusOr<std::unique_ptr<ScopedLab>> Up(const Spec& spec, const std::string& name,
                                                       const Clock& clock);
  ~ScopedLab();  // takes it down and says so in the log if that fails
  ScopedLab(const ScopedLab&) = delete;
  ScopedLab& operator=(const ScopedLab&) = delete;

  Lab& operator*() { return *lab_; }
  Lab* operator->() { return lab_.get(); }

 private:
  ScopedLab(std::string name, const Clock& clock) : name_(std::move(name)), clock_(clock) {}
  absl::Status StartGuard();

  const std::string name_;
  const Clock& clock_;
  UniqueFd lifeline_;  // the guard's other end closes with the last process that has this one
  pid_t guard_ = -1;
  std::unique_ptr<Lab> lab_;
};

}  // namespace syncopate::lab

#endif  // SYNCOPATE_LAB_SCOPED_LAB_H_
