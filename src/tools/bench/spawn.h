// Programs that the command runs beside itself, with their output in a log.
#ifndef SYNCOPATE_TOOLS_BENCH_SPAWN_H_
#define SYNCOPATE_TOOLS_BENCH_SPAWN_H_

#include <sys/types.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "tools/bench/launch_plan.h"

namespace syncopate::tools::bench {

// Starts the plan's program as the leader of its own process group (Ctrl-C goes to the command,
// which ends it in an orderly way). It dies with this process. Its output is appended to the file
// `log`, which is made.
absl::StatusOr<pid_t> Spawn(const LaunchPlan& plan, const std::string& log);

// The last line of a log that says something; empty if there is none.
std::string LastWords(const std::string& log);

// Runs the plan's program to its end. Cancelled when `interrupt_fd` becomes readable,
// DeadlineExceeded at the deadline: its process group is killed then. Unavailable with its last
// words if it fails.
absl::Status RunToEnd(const LaunchPlan& plan, const std::string& log, int64_t deadline_ns,
                      int interrupt_fd, const Clock& clock);

}  // namespace syncopate::tools::bench

#endif  // SYNCOPATE_TOOLS_BENCH_SPAWN_H_
