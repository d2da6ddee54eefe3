// Ends everything that a process has started, directly or not.
#ifndef SYNCOPATE_LAUNCH_PROCESS_TREE_H_
#define SYNCOPATE_LAUNCH_PROCESS_TREE_H_

#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "base/clock.h"

namespace syncopate::launch {

// All live descendants of `root` by /proc, in no particular order.
std::vector<pid_t> Descendants(pid_t root);

// Kills all descendants of this process (SIGKILL) and reaps them, until there are none or
// `deadline_ns` has come; returns whether there are none. This process must be a child subreaper,
// so that orphans come back to it, and must have SIGCHLD blocked.
bool EndDescendants(const Clock& clock, int64_t deadline_ns);

}  // namespace syncopate::launch

#endif  // SYNCOPATE_LAUNCH_PROCESS_TREE_H_
