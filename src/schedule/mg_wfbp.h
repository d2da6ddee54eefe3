// MG-WFBP (Shi, Chu, Li: INFOCOM 2019): tensors are merged where that saves a start-up, and the
// transfers follow one another.
#ifndef SYNCOPATE_SCHEDULE_MG_WFBP_H_
#define SYNCOPATE_SCHEDULE_MG_WFBP_H_

#include "schedule/planners.h"

namespace syncopate::schedule {

// Goes from the last tensor down. Tensor l is merged with l-1 if l-1 is ready before the start-up
// of l would be over: ready[l-1] < start[l] + a, where start[l] is the start of all that is merged
// with l so far.
Schedule PlanMgWfbp(const TensorTable& table, const cost::CommunicationCosts& costs,
                    const ScheduleOptions& options);

}  // namespace syncopate::schedule

#endif  // SYNCOPATE_SCHEDULE_MG_WFBP_H_
