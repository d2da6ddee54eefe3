// Which ranks may host the services of a job, in which order.
#ifndef SYNCOPATE_WORKER_SERVICE_RANKS_H_
#define SYNCOPATE_WORKER_SERVICE_RANKS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/environment.h"

namespace syncopate::worker {

// SYNCOPATE_SERVICE_RANKS, first choice first, as "4,0-3"; empty if it is not set. InvalidArgument
// says what is wrong with it.
absl::StatusOr<std::vector<int>> ServiceRanksFromEnvironment(const Environment& environment);

// The host order of a job of `size` workers: `ranks`, or, if these are none, all that are no
// `servers`, by number; a job of servers alone lets them host. InvalidArgument if a rank is not one of
// the job's, or if `ranks` name a server.
absl::StatusOr<std::vector<int>> ServiceOrder(std::vector<int> ranks,
                                              const std::vector<int>& servers, int size);

// What all workers must have in common about it (transport/terms.h); empty if neither is set.
std::string ServiceTerms(const std::vector<int>& ranks, const std::vector<int>& servers);

}  // namespace syncopate::worker

#endif  // SYNCOPATE_WORKER_SERVICE_RANKS_H_
