// The probe as a job: what every worker runs, whatever started it.
#ifndef SYNCOPATE_TOOLS_PROBE_PROBE_JOB_H_
#define SYNCOPATE_TOOLS_PROBE_PROBE_JOB_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/progress.h"
#include "probe/infer.h"
#include "transport/transport.h"

namespace syncopate::tools {

// All workers of the job call it; rank 0 gets the result, the others nothing. `host` is the name of
// this worker's host, `machine` tells hosts apart that have the same name. Rank 0 shows `progress`
// (null: none).
absl::StatusOr<std::optional<probe::Inference>> ProbeTogether(
    transport::Transport& transport, const Clock& clock, const std::string& host,
    const std::string& machine, probe::InferOptions options, Progress* progress);

}  // namespace syncopate::tools

#endif  // SYNCOPATE_TOOLS_PROBE_PROBE_JOB_H_
