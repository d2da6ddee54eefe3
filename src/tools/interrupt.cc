#include "tools/interrupt.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

namespace syncopate::tools {
namespace {

std::atomic<int> signal_pipe{-1};

void OnSignal(int) {
  const int error = errno;
  const char byte = 0;
  // If the pipe is full, it is readable already.
  [[maybe_unused]] const ssize_t n = write(signal_pipe.load(), &byte, 1);
  errno = error;
}

}  // namespace

InterruptScope::InterruptScope() {
  // Without a pipe (no descriptors left) signals keep their usual effect.
  if (pipe2(pipe_, O_CLOEXEC | O_NONBLOCK) != 0) return;
  signal_pipe.store(pipe_[1]);
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &action, &before_[i]);
}

InterruptScope::~InterruptScope() {
  if (pipe_[0] < 0) return;
  for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
  signal_pipe.store(-1);
  close(pipe_[0]);
  close(pipe_[1]);
}

}  // namespace syncopate::tools
