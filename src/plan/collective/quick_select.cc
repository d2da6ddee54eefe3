#include "plan/collective/quick_select.h"

namespace syncopate::plan {

double SharedMemory::Seconds(double traffic, double touched) const {
  const bool cached = cache_bytes > 0 && touched <= static_cast<double>(cache_bytes);
  return traffic / (cached ? cached_bandwidth : bandwidth);
}

SharedMemory MemoryOfHost(const HostCosts& costs, int workers) {
  return {HandoverSeconds(costs, workers), costs.memory_bandwidth, costs.cached_bandwidth,
          costs.cache_bytes};
}

double OneShotSeconds(const SharedMemory& memory, int workers, double bytes) {
  if (workers <= 1) return 0;
  const double n = workers;
  return memory.handover + memory.Seconds(n * (n + 3) * bytes, 2 * n * bytes);
}

double DirectSeconds(const SharedMemory& memory, int workers, double bytes) {
  if (workers <= 1) return 0;
  const double n = workers;
  return 2 * memory.handover + memory.Seconds(2 * n * bytes, n * bytes);
}

double StepwiseSeconds(const SharedMemory& memory, int workers, double bytes, bool reduces) {
  if (workers <= 1) return 0;
  const double n = workers;
  const double copies = reduces ? 2 * 2 * n * bytes : 0;  // in and out, each read and written
  return 2 * memory.handover + memory.Seconds(copies, 2 * n * bytes);
}

QuickSelect::QuickSelect(int workers, const HostCosts& costs) {
  if (workers <= 1) return;
  const SharedMemory memory = MemoryOfHost(costs, workers);
  // The difference of the two grows with the size, so the border can be found by halving.
  uint64_t below = 0;
  uint64_t above = uint64_t{1} << 40;
  while (above - below > 1) {
    const uint64_t middle = below + (above - below) / 2;
    const double bytes = static_cast<double>(middle);
    const bool one_shot =
        OneShotSeconds(memory, workers, bytes) <= DirectSeconds(memory, workers, bytes);
    (one_shot ? below : above) = middle;
  }
  one_shot_bytes_max_ = below;
}

absl::string_view QuickSelect::Algorithm(Collective collective, uint64_t bytes) const {
  if (collective == Collective::kBarrier) return "dissemination";
  if (collective == Collective::kAllReduce && bytes <= one_shot_bytes_max_) return "one-shot";
  return "direct";
}

}  // namespace syncopate::plan
