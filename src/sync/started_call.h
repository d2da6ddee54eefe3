// Starts a collective whose end somebody wants to be told of, whatever becomes of it.
#ifndef SYNCOPATE_SYNC_STARTED_CALL_H_
#define SYNCOPATE_SYNC_STARTED_CALL_H_

#include <functional>

#include "absl/status/status.h"
#include "syncopate/syncopate.h"

namespace syncopate::sync {

// `ended` is called once: on the thread that drives the engine, where it must be quick, or here if the
// call is refused.
Handle StartCall(Group& group, Call call, std::function<void(const absl::Status&)> ended);

}  // namespace syncopate::sync

#endif  // SYNCOPATE_SYNC_STARTED_CALL_H_
