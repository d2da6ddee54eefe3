// A second opinion in tests: the cheapest arborescence, as LEMON finds it.
#ifndef SYNCOPATE_PLAN_FOREST_LEMON_ARBORESCENCE_H_
#define SYNCOPATE_PLAN_FOREST_LEMON_ARBORESCENCE_H_

namespace syncopate::plan {

// `costs` by sender, then receiver; infinity where there is no edge. All workers can be reached.
double LemonArborescenceCost(int workers, const double* costs, int root);

}  // namespace syncopate::plan

#endif  // SYNCOPATE_PLAN_FOREST_LEMON_ARBORESCENCE_H_
