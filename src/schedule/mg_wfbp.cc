#include "schedule/mg_wfbp.h"

#include <algorithm>

namespace syncopate::schedule {

Schedule PlanMgWfbp(const TensorTable& table, const cost::CommunicationCosts& costs,
                    const ScheduleOptions& /*options*/) {
  const std::vector<double> ready = ReadyTimes(table);
  Schedule schedule{"mg-wfbp", {}};
  double end = 0;    // when the transfer before ends
  double bytes = 0;  // of the tensors l..last, which are merged into one transfer
  int last = table.size() - 1;
  for (size_t l = table.tensors.size(); l-- > 0;) {
    bytes += static_cast<double>(table.tensors[l].bytes());
    const double start = std::max(end, ready[l]);
    if (l > 0 && ready[l - 1] < start + costs.a) continue;
    schedule.transfers.push_back({static_cast<int>(l), last, 0});
    end = start + costs.Seconds(bytes);
    bytes = 0;
    last = static_cast<int>(l) - 1;
  }
  return schedule;
}

}  // namespace syncopate::schedule
