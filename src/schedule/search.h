// The best schedule that can be found in a bounded number of steps on the exact timeline model.
#ifndef SYNCOPATE_SCHEDULE_SEARCH_H_
#define SYNCOPATE_SCHEDULE_SEARCH_H_

#include "schedule/planners.h"

namespace syncopate::schedule {

// Starts from the schedules of all other planners, buckets of many sizes and a beam search over
// k-way schedules, and improves the best of them by local changes. Models of a few tensors are
// searched completely. What it costs is bounded by steps, not by time, so that all workers find the
// same. Never worse than the other planners on the model.
Schedule PlanBySearch(const TensorTable& table, const cost::CommunicationCosts& costs,
                      const ScheduleOptions& options);

// No schedule with as many transfers at once has a shorter iteration on the model (without
// overlap_forward). It may not be reached.
double IterationBound(const TensorTable& table, const cost::CommunicationCosts& costs,
                      const ScheduleOptions& options);

}  // namespace syncopate::schedule

#endif  // SYNCOPATE_SCHEDULE_SEARCH_H_
