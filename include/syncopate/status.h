// Errors that say how much is lost.
//
// Every error of Syncopate is an absl::Status. Errors of the running system additionally carry the
// *blast radius*, the largest thing that is lost with it, and, where one worker is to blame, the
// suspect. A caller reads the radius to know what to throw away: an operation, a group, or the
// whole job.
#ifndef SYNCOPATE_STATUS_H_
#define SYNCOPATE_STATUS_H_

#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace syncopate {
// The largest thing that is lost with an error.
enum class BlastRadius {
  kOperation,  // this call only; the group can be used again
  kGroup,      // the group cannot be used again; other groups can
  kJob,        // this worker cannot go on in this job
};

absl::string_view Name(BlastRadius radius);  // "operation", "group", "job"

// `status` with a radius and, if `suspect` >= 0, the rank of the worker to blame. OK stays OK.
absl::Status WithBlast(absl::Status status, BlastRadius radius, int suspect = -1);

// What WithBlast() attached, or nothing.
std::optional<BlastRadius> GetBlast(const absl::Status& status);
std::optional<int> GetSuspect(const absl::Status& status);  // the rank of the worker to blame

}  // namespace syncopate

#endif  // SYNCOPATE_STATUS_H_
