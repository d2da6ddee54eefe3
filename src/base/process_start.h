// When this process was started, which is before it could look at a clock: loading its libraries
// takes a large program the greater part of a second.
#ifndef SYNCOPATE_BASE_PROCESS_START_H_
#define SYNCOPATE_BASE_PROCESS_START_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace syncopate {

// From the text of /proc/PID/stat: the ticks from the start of the system to that of the process.
absl::StatusOr<uint64_t> ParseStartTicks(absl::string_view stat);

// The moment of MonotonicClock() at which this process was started, to a hundredth of a second; now
// where the system does not tell.
int64_t ProcessStartNs();

}  // namespace syncopate

#endif  // SYNCOPATE_BASE_PROCESS_START_H_
