// Flows between hosts of a lab by iperf3, in the background or measured.
#ifndef SYNCOPATE_LAB_FLOW_H_
#define SYNCOPATE_LAB_FLOW_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "lab/change.h"
#include "lab/plan.h"

namespace syncopate::lab {

// Starts both ends of a background flow; they end by themselves after its seconds. `port` must be
// free on the receiving host.
absl::StatusOr<std::vector<ProcessId>> StartFlow(const Plan& plan, const Change& flow, int port,
                                                 const Clock& clock);

struct Pair {
  int from = -1;  // hosts
  int to = -1;
};

// What each pair's receiver got, in bit/s of payload, while all send at once for `seconds` (whole
// ones, at least 1), the first half second left out. Each pair sends over `streams` connections
// with that congestion control (empty: the host's). Cancelled when `cancel_fd` becomes readable
// (-1: never).
absl::StatusOr<std::vector<double>> MeasureFlows(const Plan& plan, const std::vector<Pair>& pairs,
                                                 double seconds, int streams,
                                                 const std::string& congestion, const Clock& clock,
                                                 int cancel_fd = -1);

}  // namespace syncopate::lab

#endif  // SYNCOPATE_LAB_FLOW_H_
