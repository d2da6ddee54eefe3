#include "schedule/asc_wfbp.h"

#include <algorithm>

#include "schedule/timeline.h"

namespace syncopate::schedule {
namespace {

// The transfers decided so far, in published times.
class Decided {
 public:
  explicit Decided(const cost::CommunicationCosts& costs) : costs_(costs) {}

  double NormalStart(double ready) const { return std::max(ready, ends_); }
  // A transfer that runs beside the one before it still waits for all earlier ones, so that at most
  // two run at once.
  double StartAtOnce(double ready) const { return std::max({ready, start_, ends_before_}); }
  double EndAtOnce(double ready, double bytes) const {
    const double start = StartAtOnce(ready);
    return start + costs_.Seconds(bytes) + PublishedPenalty(costs_, bytes_, start - start_);
  }

  void Add(double start, double end, double bytes) {
    start_ = start;
    bytes_ = bytes;
    ends_before_ = ends_;
    ends_ = std::max(ends_, end);
  }

 private:
  const cost::CommunicationCosts& costs_;
  // The last transfer that was added: its start and its bytes.
  double start_ = 0;
  double bytes_ = 0;
  double ends_ = 0;         // when all transfers so far have ended
  double ends_before_ = 0;  // when all but the last one have ended
};

}  // namespace

Schedule PlanAscWfbp(const TensorTable& table, const cost::CommunicationCosts& costs,
                     const ScheduleOptions& /*options*/) {
  const std::vector<double> ready = ReadyTimes(table);
  Schedule schedule{"asc-wfbp", {}};
  Decided decided(costs);
  double bytes = 0;  // of the tensors l..last, which are merged into one transfer
  int last = table.size() - 1;
  for (size_t l = table.tensors.size(); l-- > 0;) {
    bytes += static_cast<double>(table.tensors[l].bytes());
    const double normal_start = decided.NormalStart(ready[l]);
    const double normal_end = normal_start + costs.Seconds(bytes);
    const double end_at_once = decided.EndAtOnce(ready[l], bytes);
    // Tensor 0 has no next tensor to be merged with, and after it nothing is left to be computed
    // behind which its transfer could hide: it is sent at once.
    bool at_once = true;
    if (l > 0) {
      // The three conditions of Theorem 1 (docs/asc-wfbp.md). The next tensor is l - 1.
      // q1: sent after the transfer before it, this one ends before the next tensor is ready. The
      //     network is free then, so nothing can be gained: it is sent normally.
      // q2: the next tensor is ready before this transfer's start-up would be over, so that waiting
      //     for it costs less than a start-up of its own.
      // q3: beside the transfer before it, this one ends before the next tensor is ready.
      // The tensor is merged with the next if only q2 holds; without q1 it is otherwise sent at
      // once, beside the transfer before it.
      const bool q1 = normal_end <= ready[l - 1];
      const bool q2 = ready[l - 1] < normal_start + costs.a;
      const bool q3 = end_at_once < ready[l - 1];
      if (!q1 && q2 && !q3) continue;
      at_once = !q1;
    }
    at_once = at_once && !schedule.transfers.empty();
    schedule.transfers.push_back({static_cast<int>(l), last, at_once ? 1 : 0});
    if (at_once) {
      decided.Add(decided.StartAtOnce(ready[l]), end_at_once, bytes);
    } else {
      decided.Add(normal_start, normal_end, bytes);
    }
    bytes = 0;
    last = static_cast<int>(l) - 1;
  }
  return schedule;
}

}  // namespace syncopate::schedule
