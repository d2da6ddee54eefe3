// Fewer trees at little loss: an optimal packing may use as many trees as the network has parts,
// most of them for a tiny share of the bytes.
#ifndef SYNCOPATE_PLAN_FOREST_FEW_TREES_H_
#define SYNCOPATE_PLAN_FOREST_FEW_TREES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "plan/forest/packing.h"
#include "plan/forest/packing_network.h"

namespace syncopate::plan {

// The best shares for these pairs alone: changes them in place (0 for those that are of no use) and
// returns the seconds a byte takes. `pairs` must not be empty.
absl::StatusOr<double> ShareOut(const PackingNetwork& network, std::vector<TreePair>& pairs);

// The pairs with the largest shares, as few of them as keep the time below `seconds_max` a byte
// with shares found anew; all that have a share if it cannot be kept.
absl::StatusOr<std::vector<TreePair>> KeepFew(const PackingNetwork& network,
                                              const std::vector<TreePair>& pairs,
                                              double seconds_max);

// The seconds a byte takes with these shares: of the busiest resource.
double SecondsOf(const PackingNetwork& network, const std::vector<TreePair>& pairs);

}  // namespace syncopate::plan

#endif  // SYNCOPATE_PLAN_FOREST_FEW_TREES_H_
