// What all supervisors of a job wait for: signals and deadlines.
#ifndef SYNCOPATE_LAUNCH_SUPERVISOR_WAITS_H_
#define SYNCOPATE_LAUNCH_SUPERVISOR_WAITS_H_

#include <signal.h>

#include <cstdint>
#include <functional>

#include "base/clock.h"
#include "base/unique_fd.h"

namespace syncopate::launch {

// Signals that end the job; the rest of a user's signals do what they always do.
inline constexpr int kEndingSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

// How long killed processes may take to go (they can be stuck in the kernel), and how long the
// reader of our output may block us once the job has failed.
inline constexpr int64_t kKillNs = 5'000'000'000;
inline constexpr int64_t kFlushNs = 5'000'000'000;

// A file descriptor that is readable when one of kEndingSignals or SIGCHLD, which must be blocked,
// has come.
UniqueFd WatchSignals();

// Reads all that have come: calls `end` with each of kEndingSignals, and returns whether there was
// a SIGCHLD.
bool TakeSignals(const UniqueFd& signals, const std::function<void(int signal)>& end);

// For poll(): until `deadline_ns`, but no longer than an hour; -1 (no limit) for INT64_MAX.
int PollTimeoutMs(const Clock& clock, int64_t deadline_ns);

}  // namespace syncopate::launch

#endif  // SYNCOPATE_LAUNCH_SUPERVISOR_WAITS_H_
