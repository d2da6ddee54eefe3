// The values on which the workers of a job agree for a synchronizer: schedules, topologies and batch sizes,
// each from an iteration on that is the same everywhere (worker/live_values.h). A strategy is told the first
// two by NewValue; batch sizes, which strategies ask for by SetBatch, go to the sampler.
//
// Position is the worker's own iteration, so this also holds where workers are at different ones.
#ifndef SYNCOPATE_SYNC_AGREED_VALUES_H_
#define SYNCOPATE_SYNC_AGREED_VALUES_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "strategy/event.h"
#include "syncopate/syncopate.h"
#include "worker/live_values.h"

namespace syncopate::sync {

// Thread-safe, but Reach(), WantBatch() and TakeBatches() are called by one thread.
class AgreedValues {
 public:
  // How many iterations a worker may begin while it does not know whether a value is agreed on: one takes
  // milliseconds, a question and its answer less.
  static constexpr uint8_t kIterationsFurther = 2;

  // `number`: of the synchronizer in its job, the same on all workers. `tensors`: of its model.
  AgreedValues(Worker& worker, int number, int tensors);
  // This worker takes part no more.
  ~AgreedValues();
  AgreedValues(const AgreedValues&) = delete;

  // This worker, which has begun `iteration` last, takes part in what is agreed on schedules from now on.
  // Every worker comes to it.
  void BeginSchedules(int64_t iteration) { schedules_.Begin(iteration); }
  void BeginTopologies(int64_t iteration) { topologies_.Begin(iteration); }
  void BeginBatches(int64_t iteration) { batches_.Begin(iteration); }

  // Has all workers use the value from some iteration on that none of them has begun. Returns at once. If
  // they cannot agree, nobody uses it, and the log says why.
  void Propose(const strategy::Value& value);

  // This worker's batches are to have so many samples. Proposes that, unless it is agreed on or proposed
  // already; to be called again before each iteration, since another worker's proposal may be first.
  void WantBatch(uint64_t samples);
  // The batch sizes by rank that count for the iterations after this one, if they are new.
  std::optional<std::map<int, uint64_t>> TakeBatches(int64_t iteration);

  // Before this worker begins `iteration`: what was agreed on since the last call, in order. All that
  // counts for it is among what was returned by then. It may wait, until the deadline at most.
  absl::StatusOr<std::vector<strategy::NewValue>> Reach(int64_t iteration, int64_t deadline_ns);

  // Batch sizes by rank as they are proposed.
  using Batches = std::map<int, uint64_t>;
  static std::string Encode(const Batches& batches);
  static absl::StatusOr<Batches> Decode(absl::string_view bytes, int workers);

 private:
  const int rank_;
  const int workers_;
  worker::LiveValues schedules_;
  worker::LiveValues topologies_;
  worker::LiveValues batches_;
  Batches newest_;                                  // that are agreed on
  std::deque<std::pair<int64_t, Batches>> coming_;  // by the iteration from which they count
};

}  // namespace syncopate::sync

#endif  // SYNCOPATE_SYNC_AGREED_VALUES_H_
