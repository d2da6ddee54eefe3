// Schedules that do not look at times: none, wfbp and bucket. See schedule/planners.h.
#ifndef SYNCOPATE_SCHEDULE_FIXED_PLANNERS_H_
#define SYNCOPATE_SCHEDULE_FIXED_PLANNERS_H_

#include "schedule/planners.h"

namespace syncopate::schedule {

Schedule PlanNone(const TensorTable& table, const cost::CommunicationCosts& costs,
                  const ScheduleOptions& options);
Schedule PlanWfbp(const TensorTable& table, const cost::CommunicationCosts& costs,
                  const ScheduleOptions& options);
// As DistributedDataParallel does: a bucket is closed by the tensor that fills it.
Schedule PlanBuckets(const TensorTable& table, const cost::CommunicationCosts& costs,
                     const ScheduleOptions& options);

}  // namespace syncopate::schedule

#endif  // SYNCOPATE_SCHEDULE_FIXED_PLANNERS_H_
