// One text from rank 0 to all workers through PMIx, which Open MPI and Slurm offer to the processes
// that they start.
#ifndef SYNCOPATE_CONTROL_PMIX_EXCHANGE_H_
#define SYNCOPATE_CONTROL_PMIX_EXCHANGE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"

namespace syncopate::control {

// All workers of the job call it with the same `name`; it returns what rank 0 gave as `text`. The
// library (libpmix.so.2) is loaded now and not needed elsewhere.
absl::StatusOr<std::string> ShareByPmix(const std::string& name, int rank, const std::string& text,
                                        const Clock& clock, int64_t deadline_ns);

}  // namespace syncopate::control

#endif  // SYNCOPATE_CONTROL_PMIX_EXCHANGE_H_
