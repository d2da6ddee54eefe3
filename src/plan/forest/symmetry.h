// Symmetries of a network: permutations of its members that change nothing.
//
// If some trees are a packing, so are their images under a symmetry, and so is the average of all
// images, which takes as long and loads all images of a resource alike. The best time is therefore
// also that of a network in which all images of a resource are one, with the sum of their rates.
// Where machines are alike that network has few resources, and its packing is found in no time; its
// price of a joined resource, given to each of the images, proves the same bound for the network
// itself. Only the averaged trees are many: use this to find times, not plans.
#ifndef SYNCOPATE_PLAN_FOREST_SYMMETRY_H_
#define SYNCOPATE_PLAN_FOREST_SYMMETRY_H_

#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "model/topology.h"
#include "plan/forest/packing_network.h"

namespace syncopate::plan {

// The image of each member, by member.
using Permutation = std::vector<int>;

// If the permutation takes active members to active ones, and every edge to one that loads
// resources of the same rates in the same way: by resource, its image. Else nothing. `active`:
// sorted members.
std::optional<std::vector<int>> ResourceImages(const PackingNetwork& network,
                                               absl::Span<const int> active,
                                               const Permutation& permutation);

// The network in which what the symmetries among `candidates` take to one another is one resource.
PackingNetwork JoinImages(const PackingNetwork& network, absl::Span<const int> active,
                          const std::vector<Permutation>& candidates);

// Permutations that are symmetries where hosts, or the devices of a host, are alike: exchanges of
// one or two pairs of workers of a host, translations by exclusive or, exchanges of hosts. For a
// network of all workers; hosts of more than 16 workers are only exchanged.
std::vector<Permutation> SymmetryCandidates(const Topology& topology,
                                            absl::Span<const int> placement);

}  // namespace syncopate::plan

#endif  // SYNCOPATE_PLAN_FOREST_SYMMETRY_H_
