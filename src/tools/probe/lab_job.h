// Runs a function as the workers of a job on the hosts of a lab, a process each, without a
// launcher.
#ifndef SYNCOPATE_TOOLS_PROBE_LAB_JOB_H_
#define SYNCOPATE_TOOLS_PROBE_LAB_JOB_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "lab/lab.h"
#include "transport/transport.h"

namespace syncopate::tools {

// What a worker does; rank 0's text is the result.
using LabWork = std::function<absl::StatusOr<std::string>(transport::Transport& transport,
                                                          const std::string& host)>;

// One worker a host, in the order of the lab's hosts. Returns when all have ended, at the latest
// after `timeout_ns`; whatever happens, none is left. The first error of a worker names its host.
// Cancelled when `cancel_fd` becomes readable (-1: never). The calling process must have one thread
// only.
absl::StatusOr<std::string> RunInLab(const lab::Lab& lab, const LabWork& work, const Clock& clock,
                                     int64_t timeout_ns, int cancel_fd);

}  // namespace syncopate::tools

#endif  // SYNCOPATE_TOOLS_PROBE_LAB_JOB_H_
