// Schedules that do not look at times: none, wfbp and bucket. See schedule/planners.h.
#ifndef SYNCOPATE_SCHEDULE_FIXED_PLANNERS_H_
#define SYNCOPATE_SCHEDULE_FIXED_PLANNERS_H_

#include "schedule/planners.h"

namespace syncopate {

Schedule PlanNone(const TensorTable& table, const CommunicationCosts& costs,
                  const ScheduleOptions& options);
Schedule PlanWfbp(const TensorTable& table, const CommunicationCosts& costs,
                  const ScheduleOptions& options);
// As DistributedDataParallel does: a bucket is closed by the tensor that fills it.
Schedule PlanBuckets(const TensorTable& table, const CommunicationCosts& costs,
                     const ScheduleOptions& options);

}  // namespace syncopate

#endif  // SYNCOPATE_SCHEDULE_FIXED_PLANNERS_H_
