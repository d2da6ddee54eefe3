// The part of a network that messages between some devices use, as a small topology of its own: a group of
// few is priced on it in a time that does not grow with the network, and groups whose parts look the same
// are priced once.
#ifndef SYNCOPATE_SIM_EXCERPT_H_
#define SYNCOPATE_SIM_EXCERPT_H_

#include <vector>

#include "absl/status/statusor.h"
#include "model/topology.h"
#include "model/topology_routes.h"

namespace syncopate::sim {

struct Excerpt {
  // Nodes, links and capacities in their order in the whole, under new names; a route for every pair.
  Topology topology;
  std::vector<int> devices;  // in it, by those that were given
};

// `routes` are those of `topology`.
absl::StatusOr<Excerpt> ExcerptOf(const Topology& topology, Routes& routes,
                                  const std::vector<int>& devices);

}  // namespace syncopate::sim

#endif  // SYNCOPATE_SIM_EXCERPT_H_
