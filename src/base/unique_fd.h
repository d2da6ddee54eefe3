// Owns a file descriptor and closes it.
#ifndef SYNCOPATE_BASE_UNIQUE_FD_H_
#define SYNCOPATE_BASE_UNIQUE_FD_H_

#include <unistd.h>

#include <utility>

namespace syncopate {

// Move-only. Not thread-safe.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) {
      Reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~UniqueFd() { Reset(); }

  int get() const { return fd_; }
  bool ok() const { return fd_ >= 0; }
  // Gives it away: the caller closes it.
  int Release() { return std::exchange(fd_, -1); }
  void Reset() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }

 private:
  int fd_ = -1;
};

}  // namespace syncopate

#endif  // SYNCOPATE_BASE_UNIQUE_FD_H_
