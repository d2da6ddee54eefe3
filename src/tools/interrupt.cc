#include "tools/interrupt.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <string>

#include "absl/strings/str_cat.h"
#include "launch/outcome.h"

namespace syncopate::tools {
namespace {

constexpr int kSignalsCaught = 2;

std::atomic<int> signal_pipe{-1};
std::atomic<int> first_signal{0};
std::atomic<int> signals_seen{0};

void OnSignal(int signal) {
  const int error = errno;
  int none = 0;
  first_signal.compare_exchange_strong(none, signal);
  if (++signals_seen >= kSignalsCaught) ::signal(signal, SIG_DFL);
  const char byte = static_cast<char>(signal);
  // If the pipe is full, it is readable already.
  [[maybe_unused]] const ssize_t n = write(signal_pipe.load(), &byte, 1);
  errno = error;
}

// What an InterruptLine says, by signal: made beforehand, because a handler may only write.
std::array<std::string, kInterruptSignals.size()> lines;

void OnSignalOfLine(int signal) {
  for (size_t i = 0; i < kInterruptSignals.size(); ++i) {
    if (kInterruptSignals[i] != signal) continue;
    [[maybe_unused]] const ssize_t n = write(STDERR_FILENO, lines[i].data(), lines[i].size());
  }
  _exit(128 + signal);
}

}  // namespace

InterruptLine::InterruptLine(absl::string_view command) {
  // On a terminal the line of progress is wiped out first.
  const absl::string_view wipe = isatty(STDERR_FILENO) == 1 ? "\r\x1b[K" : "";
  struct sigaction action = {};
  action.sa_handler = OnSignalOfLine;
  for (size_t i = 0; i < kInterruptSignals.size(); ++i) {
    lines[i] = absl::StrCat(wipe, "syncopate ", command, ": ",
                            launch::InterruptText(kInterruptSignals[i]), "\n");
    sigaction(kInterruptSignals[i], nullptr, &before_[i]);
    if (before_[i].sa_handler != SIG_IGN) sigaction(kInterruptSignals[i], &action, nullptr);
  }
}

InterruptLine::~InterruptLine() {
  for (size_t i = 0; i < kInterruptSignals.size(); ++i) {
    sigaction(kInterruptSignals[i], &before_[i], nullptr);
  }
}

InterruptScope::InterruptScope() {
  // Without a pipe (no descriptors left) signals keep their usual effect.
  if (pipe2(pipe_, O_CLOEXEC | O_NONBLOCK) != 0) return;
  signal_pipe.store(pipe_[1]);
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  for (size_t i = 0; i < kInterruptSignals.size(); ++i) {
    sigaction(kInterruptSignals[i], nullptr, &before_[i]);
    if (before_[i].sa_handler != SIG_IGN) sigaction(kInterruptSignals[i], &action, nullptr);
  }
}

InterruptScope::~InterruptScope() {
  if (pipe_[0] < 0) return;
  for (size_t i = 0; i < kInterruptSignals.size(); ++i)
    sigaction(kInterruptSignals[i], &before_[i], nullptr);
  signal_pipe.store(-1);
  close(pipe_[0]);
  close(pipe_[1]);
}

int InterruptScope::Take() const {
  char byte = 0;
  return read(pipe_[0], &byte, 1) == 1 ? byte : 0;
}

int InterruptSignal() { return first_signal.load(); }

absl::Status Interrupted(absl::string_view done) {
  return absl::CancelledError(
      absl::StrCat(launch::InterruptText(InterruptSignal()), done.empty() ? "" : "; ", done));
}

}  // namespace syncopate::tools
