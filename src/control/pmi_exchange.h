// One text from rank 0 to all workers through PMI-1, the line protocol between MPICH's process
// manager (Hydra) and the processes that it starts.
#ifndef SYNCOPATE_CONTROL_PMI_EXCHANGE_H_
#define SYNCOPATE_CONTROL_PMI_EXCHANGE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"

namespace syncopate::control {

// All workers of the job call it with the same `name`; it returns what rank 0 gave as `text`, which
// has neither spaces nor line ends. `fd` is the socket of PMI_FD; it stays open and usable for an
// MPI library of the same process.
absl::StatusOr<std::string> ShareByPmi(int fd, const std::string& name, int rank,
                                       const std::string& text, const Clock& clock,
                                       int64_t deadline_ns);

}  // namespace syncopate::control

#endif  // SYNCOPATE_CONTROL_PMI_EXCHANGE_H_
