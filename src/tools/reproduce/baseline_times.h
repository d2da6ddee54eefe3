// How long the algorithms with which tree packing is compared take on a network.
#ifndef SYNCOPATE_TOOLS_REPRODUCE_BASELINE_TIMES_H_
#define SYNCOPATE_TOOLS_REPRODUCE_BASELINE_TIMES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "model/topology.h"
#include "plan/collective/fluid_time.h"

namespace syncopate::tools::reproduce {

struct BaselineTime {
  std::string name;
  bool in_paper = false;  // one of the five that the paper compares with
  plan::FluidTime time;
};

// All baselines, always in the same order: Blink, Plink, ring, double tree and parameter server
// (all active workers are servers) of the paper, then a hierarchical ring, the ring in the best
// order, and a parameter server in which inactive workers serve too. `topology` must be valid.
absl::StatusOr<std::vector<BaselineTime>> TimesOfBaselines(const Topology& topology,
                                                           absl::Span<const int> placement,
                                                           const std::vector<int>& active,
                                                           uint64_t bytes);

}  // namespace syncopate::tools::reproduce

#endif  // SYNCOPATE_TOOLS_REPRODUCE_BASELINE_TIMES_H_
