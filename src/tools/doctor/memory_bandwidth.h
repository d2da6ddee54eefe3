// How fast this machine copies memory with all its cores.
#ifndef SYNCOPATE_TOOLS_DOCTOR_MEMORY_BANDWIDTH_H_
#define SYNCOPATE_TOOLS_DOCTOR_MEMORY_BANDWIDTH_H_

#include <cstdint>

#include "base/clock.h"

namespace syncopate::tools {

// Copies between buffers of together `bytes` with `threads` threads for about `duration_ns` after
// having touched them once; gives bytes read plus bytes written per second, at the best pace that
// all threads kept up together. 0 if there is not enough memory.
double MeasureCopyBytesPerSecond(const Clock& clock, int threads, uint64_t bytes,
                                 int64_t duration_ns);

}  // namespace syncopate::tools

#endif  // SYNCOPATE_TOOLS_DOCTOR_MEMORY_BANDWIDTH_H_
