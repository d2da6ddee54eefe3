// What the forest planner makes of a setting of the paper's figures.
#ifndef SYNCOPATE_TOOLS_REPRODUCE_FOREST_TIME_H_
#define SYNCOPATE_TOOLS_REPRODUCE_FOREST_TIME_H_

#include "base/clock.h"
#include "tools/reproduce/forest_figures.h"

namespace syncopate::reproduce {

// Packs trees, with all workers that are not active as relays, to within half a percent of the
// bound where that can be proved. No tree is dropped: the figures are about the best time. `clock`
// must outlive the result.
ForestTimer MakeForestTimer(const Clock& clock);

}  // namespace syncopate::reproduce

#endif  // SYNCOPATE_TOOLS_REPRODUCE_FOREST_TIME_H_
