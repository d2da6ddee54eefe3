// Predicts when everything of one training iteration happens under a schedule, by the model of
// cost/communication_costs.h. Planners are compared by it. docs/asc-wfbp.md has the formulas.
#ifndef SYNCOPATE_SCHEDULE_TIMELINE_H_
#define SYNCOPATE_SCHEDULE_TIMELINE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "cost/communication_costs.h"
#include "model/schedule.h"
#include "model/tensor_table.h"

namespace syncopate::schedule {

struct TimelineOptions {
  // Times transfers that overlap by the published approximation instead of exactly: only the later
  // of two is slowed, by PublishedPenalty(), and its start-up counts as part of what overlaps.
  bool published_contention = false;
  // A tensor's next forward waits only for its own transfer and the forward before it, instead of
  // for all transfers.
  bool overlap_forward = false;
};

struct TimeSpan {
  double begin = 0;
  double end = 0;

  friend bool operator==(const TimeSpan&, const TimeSpan&) = default;
};

struct TransferTimes {
  double ready = 0;   // its last gradient was computed
  double start = 0;   // its start-up begins
  double moving = 0;  // its bytes begin to move
  double end = 0;
  int beside = 0;  // earlier transfers that were in flight when it started
};

// Seconds. The iteration begins with its forward pass at 0; with overlap_forward it begins with its
// backward pass at 0, and `forward` is that of the next one.
struct IterationTimeline {
  std::vector<TimeSpan> forward;   // by tensor
  std::vector<TimeSpan> backward;  // by tensor
  std::vector<TransferTimes> transfers;
  double compute_seconds = 0;    // forward and backward
  double iteration_seconds = 0;  // from one beginning to the next, in the steady state
  double exposed_seconds = 0;    // of communication: what the iteration takes beyond its computing
  double sending_seconds = 0;    // during which at least one transfer was in flight
  int at_once_max = 0;           // transfers in flight
};

// InvalidArgument if one of the values is not valid or the schedule is for another table; with
// published_contention also if it lets more than one transfer run beside another.
absl::StatusOr<IterationTimeline> PredictTimeline(const TensorTable& table,
                                                  const cost::CommunicationCosts& costs,
                                                  const Schedule& schedule,
                                                  const TimelineOptions& options = {});

// Returns iteration_seconds alone.
absl::StatusOr<double> PredictIteration(const TensorTable& table,
                                        const cost::CommunicationCosts& costs,
                                        const Schedule& schedule,
                                        const TimelineOptions& options = {});

// Formula (13) of the ASC-WFBP paper: how much longer the later of two transfers takes because the
// earlier one, of `bytes` and begun `later_by` seconds before it, still runs; 0 if it does not.
double PublishedPenalty(const cost::CommunicationCosts& costs, double bytes, double later_by);

}  // namespace syncopate::schedule

#endif  // SYNCOPATE_SCHEDULE_TIMELINE_H_
