// How long a program would take if its data flowed like a fluid, in endlessly small pieces: nothing
// is waited for, and what is most loaded decides.
//
// It is the time that papers about bandwidth give for an algorithm, is found without playing the
// program, and does not depend on the number of pieces. Two forms of it:
//   - pipelined: all parts of the program run at the same time, on different pieces. The time is
//     the largest of bytes / bandwidth over all links and shared capacities; no way to run the
//     program is quicker.
//   - staged: its stages follow one another, each as long as its own most loaded link or capacity.
//     Reducing is one stage, handing out another; where the program knows machines, each has a part
//     inside machines and a part between them.
#ifndef SYNCOPATE_PLAN_COLLECTIVE_FLUID_TIME_H_
#define SYNCOPATE_PLAN_COLLECTIVE_FLUID_TIME_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "model/program.h"
#include "model/topology.h"

namespace syncopate::plan {

struct FluidTime {
  double pipelined = 0;  // seconds
  double staged = 0;
  std::string limit;  // the link or capacity that decides the pipelined time; empty if none does
};

// `topology` must be valid, `program` valid and placed on it by `placement`. `machines`: the groups
// of workers to which stages inside and between machines refer; without, a program has two stages.
// Latencies, memory and message overheads do not count.
absl::StatusOr<FluidTime> FluidTimeOf(const Program& program, const Topology& topology,
                                      absl::Span<const int> placement, size_t bytes_per_element,
                                      const std::vector<std::vector<int>>& machines);

}  // namespace syncopate::plan

#endif  // SYNCOPATE_PLAN_COLLECTIVE_FLUID_TIME_H_
