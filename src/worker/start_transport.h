// Starts the transport of a job from the environment: it finds out this worker's rank and the job's
// hosts, then takes shared memory on one host or a network between several.
#ifndef SYNCOPATE_WORKER_START_TRANSPORT_H_
#define SYNCOPATE_WORKER_START_TRANSPORT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/environment.h"
#include "syncopate/syncopate.h"
#include "transport/transport.h"

namespace syncopate::worker {

struct StartedTransport {
  Job job;
  int64_t timeout_ns = 0;  // of every wait
  std::unique_ptr<transport::Transport> transport;
  std::vector<std::string> hosts;  // by rank, their names; empty if all workers are on one host
};

// Sets up the log, meets the others and connects. Returns when all have come, or with an error that
// names the missing ones. `terms` must be the same on all workers (transport/terms.h).
absl::StatusOr<StartedTransport> StartTransport(const Options& options,
                                                const Environment& environment,
                                                const std::string& terms = {});

}  // namespace syncopate::worker

#endif  // SYNCOPATE_WORKER_START_TRANSPORT_H_
