// What a job that goes on from a checkpoint goes on with, beside model and data: the state of every
// worker's strategy, and that of the service which the strategy asks.
//
// Workers write their parts of a checkpoint at moments of their own. Each keeps the state of its own
// strategy, and of the service what it was when this worker's part was made, with that moment. The newest
// of these is later than all that any strategy of the set had heard from the service, so it is the one to
// go on from: no group is numbered twice, and no turn given again. What it had under way is dissolved
// (Service::Resume).
#ifndef SYNCOPATE_SYNC_RESUMED_STATE_H_
#define SYNCOPATE_SYNC_RESUMED_STATE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "adapt/job_exchange.h"
#include "syncopate/syncopate.h"

namespace syncopate::sync {

// Without any of it strategy and service begin anew.
struct ResumedState {
  std::string strategy = {};    // Strategy::State() of this worker
  std::string service = {};     // Service::State()
  std::vector<int> ranks = {};  // by worker: its rank in the job before
};

// The state of a service that this worker has added, with its moment, for this worker's part of a
// checkpoint. Waits for the answer. To be called when the strategy is at rest.
absl::StatusOr<std::string> ServiceStateOf(Worker& worker, absl::string_view service,
                                           absl::Duration timeout = absl::Minutes(5));

// The state to go on from, of what ServiceStateOf() was for all workers of a set. All workers call it, with
// their own; DataLoss on the one whose bytes are none, FailedPrecondition on the others.
absl::StatusOr<std::string> NewestServiceState(adapt::JobExchange& exchange, absl::string_view own);

}  // namespace syncopate::sync

#endif  // SYNCOPATE_SYNC_RESUMED_STATE_H_
