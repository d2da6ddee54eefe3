// Whether somebody holds a process on purpose: a debugger, or the freezer of its cgroup. Such a
// process makes no progress and is not to blame for it.
#ifndef SYNCOPATE_TRANSPORT_SHM_HELD_PROCESS_H_
#define SYNCOPATE_TRANSPORT_SHM_HELD_PROCESS_H_

#include <sys/types.h>

#include <string>

#include "base/unique_fd.h"

namespace syncopate::transport::shm {

enum class Hold { kNone, kDebugger, kFreezer };

struct HeldProcess {
  Hold hold = Hold::kNone;
  std::string how;  // "it is being debugged by process 77 (gdb)"; empty for kNone
};

// The number of a pidfd's process as /proc has it, or 0 if it is not there.
pid_t NumberInProc(const UniqueFd& process);

// What /proc and the cgroups say of process `pid`. What cannot be read counts as not held. `root` is
// where they are mounted; tests have files of their own there.
HeldProcess LookAtProcess(pid_t pid, const std::string& root = "");

}  // namespace syncopate::transport::shm

#endif  // SYNCOPATE_TRANSPORT_SHM_HELD_PROCESS_H_
