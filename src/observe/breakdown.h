// Tells where the time of a run went, from the traces of its workers. Pure.
//
// An iteration of a worker lasts from its first span to the first span of the next one, without
// evaluation, checkpoints and measuring (training stands still while the job measures what
// communication costs). Its time is
//
//   compute   load, forward, backward and update, without what lies inside them of the next two
//   pack      copying into buckets and back
//   exposed   the training thread waited for transfers; part of it is
//     waiting       a transfer moves bytes only when its last participant has started it. Until
//                   then a worker waits for that late rank,
//     (the rest)    and from then on for the network
//   other     none of these: the framework, the log, the scheduling of threads
//
// compute, pack, exposed and other add up to the iteration, and so do their means over iterations.
// Medians and percentiles of the parts do not.
//
// While several transfers of a worker are under way, it waits for a late rank only as long as none
// of them moves; if the wait is for one of them, that one counts. Times of different workers are
// compared on rank 0's clock.
#ifndef SYNCOPATE_OBSERVE_BREAKDOWN_H_
#define SYNCOPATE_OBSERVE_BREAKDOWN_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "model/trace.h"

namespace syncopate::observe {

// One iteration of one worker, in seconds.
struct IterationCost {
  int iteration = 0;
  int rank = 0;
  double seconds = 0;
  double compute = 0;
  double pack = 0;
  double exposed = 0;
  double waiting = 0;  // part of exposed
  double other = 0;
  uint64_t bytes = 0;                             // sent
  std::vector<std::pair<int, double>> late = {};  // ranks waited for and how long; sums to waiting
};

// The median, the 99th percentile and the mean of many numbers; all 0 if there are none.
struct Spread {
  double p50 = 0;
  double p99 = 0;
  double mean = 0;
};
Spread SpreadOf(std::vector<double> values);

struct WorkerCost {
  int rank = 0;
  std::string host;
  int iterations = 0;
  Spread seconds, compute, pack, exposed, waiting, other;
  uint64_t bytes = 0;  // sent in all, dropped spans included
};

// How a worker kept others waiting.
struct Lateness {
  int rank = 0;
  std::string host;
  // The part of the iterations in which it did so for late_fraction_min or longer.
  double share = 0;
  // The seconds that the longest waiter waited for it: their median over those iterations, and
  // their sum over all iterations.
  double p50 = 0;
  double total = 0;
};

struct Breakdown {
  std::vector<IterationCost> iterations;  // by iteration, then rank
  std::vector<WorkerCost> workers;        // by rank
  // Over all iterations of all workers.
  Spread seconds, compute, pack, exposed, waiting, other;
  uint64_t bytes = 0;
  std::vector<Lateness> late;  // the largest total first; only those with a share
  // What a reader must know to judge the numbers: workers and iterations that are missing.
  std::vector<std::string> notes;
};

struct BreakdownOptions {
  int first_iteration = 0;          // earlier ones are not counted (warm-up)
  double late_fraction_min = 0.01;  // of the median iteration; shorter waits are no lateness
};

// Iterations of which any worker dropped spans are left out. InvalidArgument if a trace is invalid
// or two are of the same rank. No traces or no iterations are not an error: the breakdown is empty
// then and a note says why.
absl::StatusOr<Breakdown> BreakDown(const std::vector<WorkerTrace>& traces,
                                    const BreakdownOptions& options = {});

}  // namespace syncopate::observe

#endif  // SYNCOPATE_OBSERVE_BREAKDOWN_H_
