// Plans for large networks whose links form a tree (hosts in racks in pods), all members active: a
// linear program over groups of members in place of trees.
//
// Take a tree over the members and a group of them behind a link. Let the group's *surplus* be the
// number of children that its members have in the tree, less what joins the group (its size less
// 1), less 1 if it holds the root. A broadcast tree with surplus D then sends at least
// max(D, 0) + r messages out of the group and 1 - r + max(-D, 0) into it, where r is 1 if the
// group holds the root, else 0; a reduce tree the same the other way round. So for each byte the
// link carries 1 + max(D_broadcast, 0) + max(-D_reduce, 0) bytes out of the group, whoever the
// root is, and trees exist that reach all these numbers at once. Surpluses of a group's parts add
// up to its own and one less than there are parts. docs/forest-large.md derives all of it.
#ifndef SYNCOPATE_PLAN_FOREST_TREE_NETWORK_H_
#define SYNCOPATE_PLAN_FOREST_TREE_NETWORK_H_

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "model/topology.h"
#include "plan/forest/packing.h"
#include "plan/forest/packing_network.h"
#include "plan/forest/tree_groups.h"

namespace syncopate::plan {

// What the linear program finds.
struct TreeSurplus {
  std::vector<double> broadcast;  // by group, of the trees on average
  std::vector<double> reduce;
  std::vector<double> bytes;   // by resource: what it carries for each byte of data
  std::vector<double> prices;  // by resource: the dual solution; a second of all costs 1
  double seconds_per_byte = 0;
};
// `rates` by resource. FailedPrecondition if the solver fails.
absl::StatusOr<TreeSurplus> SolveTreeNetwork(const std::vector<TreeGroup>& groups,
                                             absl::Span<const double> rates);

struct SuggestedTrees {
  std::vector<TreePair> pairs;  // over members, with shares
  std::vector<double> prices;   // by resource; they prove the bound
  double seconds_per_byte = 0;  // of these pairs
  double bound = 0;             // the optimum of the linear program
};

// Pairs that take at most the part `loss` more time than the bound, as few as that needs but at
// most `trees_max` (0: no limit), in which case they may take longer. Nothing if the network is not
// a tree: its trees must then be found by column generation.
absl::StatusOr<std::optional<SuggestedTrees>> SuggestForTreeNetwork(const Topology& topology,
                                                                    absl::Span<const int> placement,
                                                                    const PackingNetwork& network,
                                                                    double loss, int trees_max);

}  // namespace syncopate::plan

#endif  // SYNCOPATE_PLAN_FOREST_TREE_NETWORK_H_
