#include "launch/supervisor_waits.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>

namespace syncopate::launch {

UniqueFd WatchSignals() {
  sigset_t watched;
  sigemptyset(&watched);
  sigaddset(&watched, SIGCHLD);
  for (const int signal : kEndingSignals) sigaddset(&watched, signal);
  return UniqueFd(signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
}

bool TakeSignals(const UniqueFd& signals, const std::function<void(int signal)>& end) {
  signalfd_siginfo info;
  bool children = false;
  while (read(signals.get(), &info, sizeof(info)) == sizeof(info)) {
    if (info.ssi_signo == SIGCHLD) {
      children = true;
    } else {
      end(static_cast<int>(info.ssi_signo));
    }
  }
  return children;
}

int PollTimeoutMs(const Clock& clock, int64_t deadline_ns) {
  if (deadline_ns == INT64_MAX) return -1;
  const int64_t left_ms = (deadline_ns - clock.NowNs() + 999'999) / 1'000'000;
  return static_cast<int>(std::clamp<int64_t>(left_ms, 0, 3'600'000));
}

}  // namespace syncopate::launch
