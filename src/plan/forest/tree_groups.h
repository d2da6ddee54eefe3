// Networks whose links form a tree, such as hosts in racks in pods: which members lie behind which
// link.
#ifndef SYNCOPATE_PLAN_FOREST_TREE_GROUPS_H_
#define SYNCOPATE_PLAN_FOREST_TREE_GROUPS_H_

#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "model/topology.h"
#include "plan/forest/packing_network.h"

namespace syncopate::plan {

// Members behind a link or behind several links in a row, made of smaller groups or a single
// member.
struct TreeGroup {
  int parent = -1;            // the next larger group; -1: it holds all
  int member = -1;            // the only one; -1: the group is made of others
  std::vector<int> children;  // two or more
  // The resources of the packing network that a message out of the group (into it) loads until it
  // is among the parent's children; one that it loads twice stands here twice.
  std::vector<int> out;
  std::vector<int> in;
};

// The groups of a network, every parent before its children; the first holds all members. Nothing
// if the network has fewer than two members, its links do not form a tree, or messages take detours
// in it. `network` must be of the same topology and placement.
std::optional<std::vector<TreeGroup>> FindTreeGroups(const Topology& topology,
                                                     absl::Span<const int> placement,
                                                     const PackingNetwork& network);

}  // namespace syncopate::plan

#endif  // SYNCOPATE_PLAN_FOREST_TREE_GROUPS_H_
