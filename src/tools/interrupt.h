// Ctrl-C and its kin as something that a poll() can wait for, so that the command can clean up.
#ifndef SYNCOPATE_TOOLS_INTERRUPT_H_
#define SYNCOPATE_TOOLS_INTERRUPT_H_

#include <signal.h>

#include <array>

namespace syncopate::tools {

// Catches SIGINT, SIGTERM and SIGHUP while it lives. One at a time in a process.
class InterruptScope {
 public:
  InterruptScope();
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;

  // Readable from the first signal on.
  int fd() const { return pipe_[0]; }

 private:
  static constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP};
  int pipe_[2] = {-1, -1};
  struct sigaction before_[kSignals.size()];
};

}  // namespace syncopate::tools

#endif  // SYNCOPATE_TOOLS_INTERRUPT_H_
