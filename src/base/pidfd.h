// File descriptors that stand for processes: readable once the process has ended, and never for a
// later process with the same number. They are made by system calls, since the C library's header
// of Debian 12 cannot be used from C++.
#ifndef SYNCOPATE_BASE_PIDFD_H_
#define SYNCOPATE_BASE_PIDFD_H_

#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/unique_fd.h"

namespace syncopate {

// The descriptor is closed on exec. It is not ok(), and errno is set, if there is no such process.
inline UniqueFd OpenPidFd(pid_t pid) {
  return UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
}

// Like kill(): 0, or -1 with errno.
inline int SendSignal(const UniqueFd& process, int signal) {
  return static_cast<int>(syscall(SYS_pidfd_send_signal, process.get(), signal, nullptr, 0));
}

}  // namespace syncopate

#endif  // SYNCOPATE_BASE_PIDFD_H_
