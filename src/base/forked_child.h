// What a process that was forked without exec must not do with its parent's things. It has the
// parent's memory and descriptors and none of its threads: a socket that it keeps open hides the
// parent's death from peers, and an object of the parent's that it destroys would say goodbye for
// it, or wait for a thread that is not there.
//
// All of this works for fork() of the C library, which runs handlers in the child.
#ifndef SYNCOPATE_BASE_FORKED_CHILD_H_
#define SYNCOPATE_BASE_FORKED_CHILD_H_

#include <utility>

#include "base/unique_fd.h"

namespace syncopate {

// Remembers in which process it was made. Copies remember the same. InChild() takes no lock and
// makes no system call.
class ForkMark {
 public:
  ForkMark();
  // Whether this process was forked from the one in which the mark was made.
  bool InChild() const;

 private:
  int generation_;
};

// A file descriptor that forked children do not keep: there, it refers to nothing (/dev/null) from
// the first moment on, so that its number is not given to another file while somebody still holds
// it. Move-only. Not thread-safe.
class PrivateFd {
 public:
  PrivateFd() = default;
  PrivateFd(UniqueFd fd);  // NOLINT: any descriptor may become private
  explicit PrivateFd(int fd) : PrivateFd(UniqueFd(fd)) {}
  PrivateFd(PrivateFd&& other) noexcept = default;
  PrivateFd& operator=(PrivateFd&& other) noexcept {
    if (this != &other) {
      Reset();
      fd_ = std::move(other.fd_);
    }
    return *this;
  }
  ~PrivateFd() { Reset(); }

  int get() const { return fd_.get(); }
  bool ok() const { return fd_.ok(); }
  const UniqueFd& unique() const { return fd_; }
  void Reset();

 private:
  UniqueFd fd_;
};

}  // namespace syncopate

#endif  // SYNCOPATE_BASE_FORKED_CHILD_H_
