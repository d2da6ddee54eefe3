// How much processor time this host has had, and how much of it a hypervisor gave to others: a
// virtual machine that loses much of it measures too little of everything.
#ifndef SYNCOPATE_BASE_PROCESSOR_TIME_H_
#define SYNCOPATE_BASE_PROCESSOR_TIME_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace syncopate {

// The time of all processors of a host together since it started, in the kernel's ticks.
struct ProcessorTime {
  uint64_t total = 0;   // busy, idle or stolen
  uint64_t idle = 0;    // nothing was to be done here, or only disks worked
  uint64_t stolen = 0;  // a thread here was ready, and the hypervisor ran something else
};

// From the text of /proc/stat, of which the first line counts. Kernels that do not know stolen time
// have none.
absl::StatusOr<ProcessorTime> ParseProcessorTime(absl::string_view stat);
// The processor time of this host.
absl::StatusOr<ProcessorTime> ReadProcessorTime();

// The part of the time between two readings that was stolen, 0 to 1; 0 if none has passed.
double StolenShare(const ProcessorTime& before, const ProcessorTime& after);
// The part of it in which processors were busy or could have been, had they not been stolen.
double BusyShare(const ProcessorTime& before, const ProcessorTime& after);

}  // namespace syncopate

#endif  // SYNCOPATE_BASE_PROCESSOR_TIME_H_
