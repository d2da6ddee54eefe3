// Measures what all-reduces cost the workers of a job, as schedules are planned by.
#ifndef SYNCOPATE_SYNC_COST_PROBE_H_
#define SYNCOPATE_SYNC_COST_PROBE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "cost/cost_fit.h"
#include "syncopate/syncopate.h"

namespace syncopate::sync {

struct CostProbeOptions {
  // Wall time of the whole measurement, planning collectives of new sizes included. Where it is
  // short, points are repeated less often. Three small sizes are measured in any case, once at
  // least, so a budget that is far too short is overrun.
  double budget_seconds = 2;
  uint64_t bytes_min = 64;
  uint64_t bytes_max = uint64_t{16} << 20;  // of all buffers; at least two of a size go in a row
  int at_once_max = 4;                      // gamma(k) for k up to this
  // Of each worker, that compute beside its transfers. Where they share cores with what moves the
  // bytes, a start-up waits for them; the costs then have a start-up beside such threads.
  int computing_threads = 0;
  int repetitions = 5;  // of each point, of quick ones more; the median counts
};

struct CostMeasurement {
  cost::CostFit fit;   // the costs, and the points that they come from
  double seconds = 0;  // wall time that measuring took, of the slowest worker
  // The start-up beside computing threads, if there are any; fit.costs.a is at least that.
  double startup_beside_computing = 0;
};

// All workers of the job call it, with the same options and nothing else of theirs under way on the
// world group; all get the same. A job of one worker communicates for nothing: a = b = 0.
//
// Sizes grow by 4 as long as the budget lasts. Each point is a row of all-reduces, each started by
// a Synchronizer when the one before it has ended, as schedules do, and the time of the slowest
// worker.
absl::StatusOr<CostMeasurement> MeasureCosts(Worker& worker, const CostProbeOptions& options = {});

}  // namespace syncopate::sync

#endif  // SYNCOPATE_SYNC_COST_PROBE_H_
