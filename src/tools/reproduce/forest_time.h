// What the forest planner makes of a setting of the paper's figures.
#ifndef SYNCOPATE_TOOLS_REPRODUCE_FOREST_TIME_H_
#define SYNCOPATE_TOOLS_REPRODUCE_FOREST_TIME_H_

#include "base/clock.h"
#include "tools/reproduce/forest_figures.h"

namespace syncopate::tools::reproduce {

// Packs trees, with all workers that are not active as relays. What is alike in the network is
// packed once (plan/forest/symmetry.h): the times and bounds are those of the best plans, which are
// not made themselves. `clock` must outlive the result.
ForestTimer MakeForestTimer(const Clock& clock);

}  // namespace syncopate::tools::reproduce

#endif  // SYNCOPATE_TOOLS_REPRODUCE_FOREST_TIME_H_
