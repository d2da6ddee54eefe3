// Ctrl-C and its kin as something that a poll() can wait for, so that a command can end what it has
// started and take away what it has made. All commands that do so end alike: one line that says
// `syncopate COMMAND: interrupted`, and the exit code 128 + signal (Complain() of
// tools/command_line.h gives both).
#ifndef SYNCOPATE_TOOLS_INTERRUPT_H_
#define SYNCOPATE_TOOLS_INTERRUPT_H_

#include <signal.h>

#include <array>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace syncopate::tools {

inline constexpr std::array kInterruptSignals = {SIGINT, SIGTERM, SIGHUP};

// Catches SIGINT, SIGTERM and SIGHUP while it lives, except those that are ignored (nohup). The
// third signal has its usual effect, should the command be busy with something that does not wait.
// One at a time in a process.
class InterruptScope {
 public:
  InterruptScope();
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;

  // Readable from the first signal on.
  int fd() const { return pipe_[0]; }
  // The next signal that has come and was not taken yet, to pass it on; 0 if there is none. fd() is
  // readable while there are some.
  int Take() const;

 private:
  int pipe_[2] = {-1, -1};
  struct sigaction before_[kInterruptSignals.size()];
};

// For commands that only compute, so that there is nothing to end and nothing to wait for: the same
// line and exit code as everywhere, at once. It catches what an InterruptScope catches, while it
// lives. One at a time in a process, and not beside an InterruptScope.
class InterruptLine {
 public:
  explicit InterruptLine(absl::string_view command);
  ~InterruptLine();
  InterruptLine(const InterruptLine&) = delete;
  InterruptLine& operator=(const InterruptLine&) = delete;

 private:
  struct sigaction before_[kInterruptSignals.size()];
};

// The first signal that this process has caught by an InterruptScope; 0 if none has come.
int InterruptSignal();

// Cancelled: "interrupted", or "interrupted by SIGTERM", and what was `done` about it.
absl::Status Interrupted(absl::string_view done = "");

}  // namespace syncopate::tools

#endif  // SYNCOPATE_TOOLS_INTERRUPT_H_
