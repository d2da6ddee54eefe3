// Packings of networks with many links that are alike, such as a full mesh of equal links: found
// for one of the links and turned around to the others.
//
// A *turn* is a symmetry (plan/forest/symmetry.h) that moves all workers in the same way: every
// host to the next, every worker to the next in its host. The turns of a network are few, one for
// each worker at most, and all that they take a link to is loaded alike if a packing holds all
// images of its trees. So a packing of the network in which these links are one becomes a packing
// of the network itself, with as many trees more as there are turns.
#ifndef SYNCOPATE_PLAN_FOREST_TURNS_H_
#define SYNCOPATE_PLAN_FOREST_TURNS_H_

#include <vector>

#include "absl/types/span.h"
#include "model/topology.h"
#include "plan/forest/packing.h"
#include "plan/forest/packing_network.h"
#include "plan/forest/symmetry.h"

namespace syncopate::plan {

struct Turns {
  std::vector<Permutation> generators;
  std::vector<Permutation> all;  // all compositions of these, with the identity
};

// `active`: sorted members.
Turns FindTurns(const Topology& topology, absl::Span<const int> placement,
                const PackingNetwork& network, absl::Span<const int> active);
// Whether what the turns take to one another still has equal rates.
bool StillHold(const Turns& turns, const PackingNetwork& network, absl::Span<const int> active);

// All images of the pairs; the share of each is divided among its images.
std::vector<TreePair> ImagesOf(const std::vector<TreePair>& pairs, const Turns& turns);

// The prices of the network's own resources by those of the network in which some are joined.
std::vector<double> PricesApart(const PackingNetwork& network, const PackingNetwork& joined,
                                const std::vector<double>& prices);

}  // namespace syncopate::plan

#endif  // SYNCOPATE_PLAN_FOREST_TURNS_H_
