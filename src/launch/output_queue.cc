#include "launch/output_queue.h"

#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace syncopate::launch {

int OutputQueue::Write() {
  int error = 0;
  while (!broken_ && !Empty()) {
    pollfd ready = {fd_, POLLOUT, 0};
    const int count = poll(&ready, 1, 0);
    if (count == 0 || (count < 0 && errno == EINTR)) break;
    // A pipe that is ready takes this much without blocking.
    const size_t size = std::min<size_t>(bytes_.size() - sent_, PIPE_BUF);
    const ssize_t written = write(fd_, bytes_.data() + sent_, size);
    if (written < 0 && (errno == EINTR || errno == EAGAIN)) break;
    if (written < 0) {
      error = errno;
      broken_ = true;
      break;
    }
    sent_ += static_cast<size_t>(written);
  }
  if (broken_ || Empty()) {
    bytes_.clear();
    sent_ = 0;
  } else if (sent_ > kBytesMax) {
    bytes_.erase(0, sent_);
    sent_ = 0;
  }
  return error;
}

}  // namespace syncopate::launch
