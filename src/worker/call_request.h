// From a caller's Call to what planners are asked for; what the caller got wrong is refused before any
// other worker hears of the call.
#ifndef SYNCOPATE_WORKER_CALL_REQUEST_H_
#define SYNCOPATE_WORKER_CALL_REQUEST_H_

#include "absl/status/status.h"
#include "plan/collective/request.h"
#include "syncopate/syncopate.h"

namespace syncopate::worker {

// Whether member `self` of the group takes part with data of its own.
bool IsActive(const Call& call, int self);

// OK if member `self` of a group of `size` may make the call.
absl::Status CheckCall(const Call& call, int size, int self);

// The request that a checked call makes, with its defaults filled in.
plan::CollectiveRequest RequestOf(const Call& call, int size);

}  // namespace syncopate::worker

#endif  // SYNCOPATE_WORKER_CALL_REQUEST_H_
