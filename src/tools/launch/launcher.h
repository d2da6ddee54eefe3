// Runs a program as the N ranks of a job on this machine.
//
// Two processes watch over the job, so that nothing of it outlives the launcher however that ends:
//
//   launcher ── keeper ─┬─ rank 0 ── …
//                       └─ rank 1 ── …
//
// The keeper starts the ranks, passes their output on and ends them. Both are child subreapers:
// whatever a rank leaves behind becomes a child of the keeper and, if the keeper is killed, of the
// launcher. If one of the two dies, the other kills all that is below; a rank also dies with the
// keeper by itself. What escapes is only what ranks have forked, and only if both are killed at the
// same moment; the keeper has a session of its own, so no signal to a group or terminal does that.
#ifndef SYNCOPATE_TOOLS_LAUNCH_LAUNCHER_H_
#define SYNCOPATE_TOOLS_LAUNCH_LAUNCHER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"

namespace syncopate {

struct LaunchOptions {
  std::string job;  // its id: unique on this machine
  int ranks = 1;
  std::vector<std::string> command;   // the program and its arguments; not empty
  std::optional<int64_t> timeout_ns;  // nothing: as long as it takes
  std::string timeout_text;           // as the user wrote it
  int64_t grace_ns = 2'000'000'000;   // between asking a rank to end and killing it
  bool tag = true;                    // lines of output carry the rank
};

// Returns the exit code (ExitCode() of tools/launch/outcome.h) after it has said on standard error
// what went wrong, if anything did. When it returns, no process of the job is left. The calling
// process must have one thread only.
int Launch(const LaunchOptions& options, const Clock& clock);

}  // namespace syncopate

#endif  // SYNCOPATE_TOOLS_LAUNCH_LAUNCHER_H_
