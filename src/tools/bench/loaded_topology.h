// The network of a lab as a job finds it.
#ifndef SYNCOPATE_TOOLS_BENCH_LOADED_TOPOLOGY_H_
#define SYNCOPATE_TOOLS_BENCH_LOADED_TOPOLOGY_H_

#include <vector>

#include "lab/spec.h"
#include "model/topology.h"

namespace syncopate::tools::bench {

// The network that the file declares as ours will find it: each background flow leaves half of a
// link that it crosses, as TCP shares it with one other flow, or what its own rate leaves; and each
// message costs time of the `cores` that all hosts share.
Topology LoadedTopology(const lab::Spec& spec, int cores);

// By device of that topology, in order: how much of a core's time its host gets at most, by its `cores` in
// the file; 1 where it may use a core or more.
std::vector<double> CoreShares(const lab::Spec& spec);

}  // namespace syncopate::tools::bench

#endif  // SYNCOPATE_TOOLS_BENCH_LOADED_TOPOLOGY_H_
