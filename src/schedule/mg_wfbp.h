// MG-WFBP (Shi, Chu, Li: INFOCOM 2019): tensors are merged, transfers follow one another.
#ifndef SYNCOPATE_SCHEDULE_MG_WFBP_H_
#define SYNCOPATE_SCHEDULE_MG_WFBP_H_

#include "schedule/planners.h"

namespace syncopate::schedule {

// From the last tensor down: tensor l joins l-1 if that is ready before l's start-up would be over,
// ready[l-1] < start[l] + a, where start[l] is that of all merged so far.
Schedule PlanMgWfbp(const TensorTable& table, const cost::CommunicationCosts& costs,
                    const ScheduleOptions& options);

}  // namespace syncopate::schedule

#endif  // SYNCOPATE_SCHEDULE_MG_WFBP_H_
