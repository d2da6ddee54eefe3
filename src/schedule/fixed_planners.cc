#include "schedule/fixed_planners.h"

namespace syncopate::schedule {

Schedule PlanNone(const TensorTable& table, const cost::CommunicationCosts& /*costs*/,
                  const ScheduleOptions& /*options*/) {
  return {"none", {{0, table.size() - 1, 0}}};
}

Schedule PlanWfbp(const TensorTable& table, const cost::CommunicationCosts& /*costs*/,
                  const ScheduleOptions& /*options*/) {
  Schedule schedule{"wfbp", {}};
  for (int i = table.size() - 1; i >= 0; --i) schedule.transfers.push_back({i, i, 0});
  return schedule;
}

Schedule PlanBuckets(const TensorTable& table, const cost::CommunicationCosts& /*costs*/,
                     const ScheduleOptions& options) {
  Schedule schedule{"bucket", {}};
  uint64_t bytes = 0;
  uint64_t full = options.first_bucket_bytes;
  int last = table.size() - 1;
  for (int i = last; i >= 0; --i) {
    bytes += table.tensors[static_cast<size_t>(i)].bytes();
    if (bytes < full && i > 0) continue;
    schedule.transfers.push_back({i, last, 0});
    last = i - 1;
    bytes = 0;
    full = options.bucket_bytes;
  }
  return schedule;
}

}  // namespace syncopate::schedule
