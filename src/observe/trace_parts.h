// The traces of a run that was resumed, as one. Pure.
//
// Each part of such a run has traces of its own, with the clocks of its own processes, and begins
// with an iteration that the part before it may have done already: it goes on from a checkpoint.
// What counts is the later one. On the clock of the joined traces a part begins when the part before
// it ended, since nothing was done between the two.
#ifndef SYNCOPATE_OBSERVE_TRACE_PARTS_H_
#define SYNCOPATE_OBSERVE_TRACE_PARTS_H_

#include <vector>

#include "model/trace.h"

namespace syncopate::observe {

// `parts` in the order of time, each with at most one trace a rank. Of spans that do not fit into a
// trace (limits::kTraceSpansMax) the last ones are left out.
std::vector<WorkerTrace> JoinParts(std::vector<std::vector<WorkerTrace>> parts);

}  // namespace syncopate::observe

#endif  // SYNCOPATE_OBSERVE_TRACE_PARTS_H_
