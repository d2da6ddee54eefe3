// ASC-WFBP (Shi, Chu, Li: INFOCOM 2021): each tensor is sent after the one before it, merged with
// the next one, or sent at once beside the one before it, by a greedy rule.
#ifndef SYNCOPATE_SCHEDULE_ASC_WFBP_H_
#define SYNCOPATE_SCHEDULE_ASC_WFBP_H_

#include "schedule/planners.h"

namespace syncopate::schedule {

// Theorem 1 and Algorithm 1 with the corrections that docs/asc-wfbp.md lists. It decides by the
// published times of overlapping transfers (PublishedPenalty), as its authors do.
Schedule PlanAscWfbp(const TensorTable& table, const cost::CommunicationCosts& costs,
                     const ScheduleOptions& options);

}  // namespace syncopate::schedule

#endif  // SYNCOPATE_SCHEDULE_ASC_WFBP_H_
