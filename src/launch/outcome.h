// How a job ended, and what that means for the one line and the exit code that the user sees.
#ifndef SYNCOPATE_LAUNCH_OUTCOME_H_
#define SYNCOPATE_LAUNCH_OUTCOME_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace syncopate::launch {

struct Outcome {
  enum class Kind {
    kDone,          // every rank exited with 0
    kExited,        // `rank` exited with `number`, its exit code
    kKilled,        // `rank` was killed by signal `number`; `detail` says why, if that is known
    kCannotRun,     // the program cannot be executed; `number` is an errno
    kCannotStart,   // a process or pipe for `rank` cannot be made; `number` is an errno
    kTimedOut,      // the user's limit of time has passed
    kInterrupted,   // the launcher got signal `number`
    kOutputBroken,  // standard output cannot be written; `number` is an errno
    kLauncherGone,  // the launcher itself was killed
    kHostFailed,    // `host` with `ranks` could not be reached or was lost; `detail` says how
    kNotMet,        // `rank` has not come to the rendezvous; `detail` says how long it was waited
    kNoRendezvous,  // the rendezvous cannot be started; `detail` says why
  };
  Kind kind = Kind::kDone;
  int rank = -1;
  int number = 0;
  int others_ended = 0;    // ranks that ran still and were ended because of this
  bool lost = false;       // what failed ran and has not ended by itself
  std::string host = {};   // of the rank, in a job of many hosts
  std::string ranks = {};  // "4-7"
  std::string detail = {};
};

// From a wait status of `rank`.
Outcome OutcomeOf(int rank, int wait_status);

// 0 done; a failed rank's own exit code; 128 + signal for a rank or launcher ended by one, as
// shells have it; 2 if the program cannot be run; else 1.
int ExitCode(const Outcome& outcome);

// One line without newline; empty if done. `program` and `timeout` are as the user wrote them.
std::string Explain(const Outcome& outcome, int ranks, absl::string_view program,
                    absl::string_view timeout);

// "interrupted" for Ctrl-C (and 0), else "interrupted by SIGTERM".
std::string InterruptText(int signal);

}  // namespace syncopate::launch

#endif  // SYNCOPATE_LAUNCH_OUTCOME_H_
