// Bytes that wait to be written to a file descriptor that other processes share, so that it can
// neither be made non-blocking nor be allowed to block.
#ifndef SYNCOPATE_LAUNCH_OUTPUT_QUEUE_H_
#define SYNCOPATE_LAUNCH_OUTPUT_QUEUE_H_

#include <cstddef>
#include <string>

namespace syncopate::launch {

// Not thread-safe.
class OutputQueue {
 public:
  // The owner adds nothing while the queue holds more, so that a slow reader slows the workers down.
  static constexpr size_t kBytesMax = 1 << 20;

  explicit OutputQueue(int fd) : fd_(fd) {}  // does not own it

  int fd() const { return fd_; }
  bool Empty() const { return sent_ == bytes_.size(); }
  bool Full() const { return bytes_.size() - sent_ > kBytesMax; }
  std::string& bytes() { return bytes_; }  // append only

  // Writes as much as is taken without waiting. Returns 0, or once the errno that ended it: from
  // then on everything is dropped.
  int Write();

 private:
  const int fd_;
  std::string bytes_;
  size_t sent_ = 0;
  bool broken_ = false;
};

}  // namespace syncopate::launch

#endif  // SYNCOPATE_LAUNCH_OUTPUT_QUEUE_H_
