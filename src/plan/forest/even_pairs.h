// Few pairs of trees that together use the network as evenly as they can.
#ifndef SYNCOPATE_PLAN_FOREST_EVEN_PAIRS_H_
#define SYNCOPATE_PLAN_FOREST_EVEN_PAIRS_H_

#include <vector>

#include "plan/forest/packing.h"
#include "plan/forest/packing_network.h"

namespace syncopate::plan {

// One pair for each root, over the active members, all with the same share: found by local search.
// From stars, workers move to other parents while that relieves the busiest resources. Few pairs
// have few connections, which real networks share more evenly than many.
std::vector<TreePair> FindEvenPairs(const PackingNetwork& network, const std::vector<int>& active,
                                    const std::vector<int>& roots);

}  // namespace syncopate::plan

#endif  // SYNCOPATE_PLAN_FOREST_EVEN_PAIRS_H_
