// The cost model: how long a program takes on a topology.
//
// The program is played in virtual time as flows that share links, shared capacities, memory and
// the devices' own time max-min fairly (cost/flow_network.h). docs/topology.md, "What the cost
// model makes of it", has the rules and formulas.
#ifndef SYNCOPATE_COST_PROGRAM_COST_H_
#define SYNCOPATE_COST_PROGRAM_COST_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "model/program.h"
#include "model/topology.h"

namespace syncopate::cost {

struct ProgramCost {
  struct Load {
    double bytes = 0;        // the bytes that crossed it
    double utilisation = 0;  // bytes / (bandwidth * time of the whole program), 0 to 1
  };
  struct ChainStep {
    int worker = 0;
    uint32_t step = 0;
    double begin = 0;  // when the element before it in the chain was done
    double end = 0;    // when it was done
  };

  double seconds = 0;
  std::vector<double> worker_seconds;  // when each worker was done; 0 if it has no steps
  std::vector<Load> links;             // in the order of Topology::links
  std::vector<Load> capacities;        // in the order of Topology::capacities
  // Why it took that long: steps that waited for one another, the first from 0 on, the last to the
  // end. A message stands here as its receive; what it waited for may be a step of either end, or
  // the message before it between the same two workers.
  std::vector<ChainStep> critical_chain;
  uint64_t messages = 0;
  double bytes_sent_max = 0;  // by the worker that sends most
  double bytes_sent_total = 0;
};

// `topology` must be valid. `placement` says on which device (index into topology.nodes) each
// worker is; several may be on one. InvalidArgument if the program is not well-formed or the
// placement does not fit; FailedPrecondition if the program does not end.
absl::StatusOr<ProgramCost> CostOf(const Program& program, const Topology& topology,
                                   absl::Span<const int> placement, size_t bytes_per_element);

}  // namespace syncopate::cost

#endif  // SYNCOPATE_COST_PROGRAM_COST_H_
