// Makes trees from average surpluses (plan/forest/tree_network.h says what these are): rounds the
// averages to a whole number for each tree, and builds a tree from its numbers.
#ifndef SYNCOPATE_PLAN_FOREST_TREE_COUNTS_H_
#define SYNCOPATE_PLAN_FOREST_TREE_COUNTS_H_

#include <vector>

#include "absl/types/span.h"
#include "plan/forest/tree_groups.h"
#include "plan/forest/worker_tree.h"

namespace syncopate::plan {

// By group, the surplus of each of `trees` trees: whole numbers whose averages are near those of
// `surplus`, never of the other sign, and that add up in each tree. Few members have children in
// any one tree, so that the trees are shallow.
//
// `rates` by resource. `bytes`: what each carries with the averages; changed to what it carries
// with the whole numbers. Where rounding loads somebody more it chooses those with the most time
// left.
std::vector<std::vector<int>> WholeSurpluses(const std::vector<TreeGroup>& groups,
                                             const std::vector<double>& surplus, bool reduce,
                                             int trees, absl::Span<const double> rates,
                                             std::vector<double>& bytes);

// A tree with this root in which every member has as many children as its surplus says, and one
// more if it is the root, and in which messages cross the borders of groups as seldom as can be.
// `surplus` by group; those of the members count.
WorkerTree BuildTree(const std::vector<TreeGroup>& groups, absl::Span<const int> surplus, int root);

}  // namespace syncopate::plan

#endif  // SYNCOPATE_PLAN_FOREST_TREE_COUNTS_H_
