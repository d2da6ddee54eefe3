// Runs a strategy live: binds its events to a training loop and its commands to collectives.
//
// The training loop calls, from one thread, in every iteration:
//
//   Begin(samples)                     its batch
//   Need(t), for every tensor          before the forward pass uses it; may wait
//   BackwardBegins()
//   Gradient(t), last to first         its gradient is there
//   EndBackward()
//
// and Finish() after the last one. Gradients are packed into one buffer in the order of the
// tensors, which collectives read in place, so packing is the only copy. Transfers start and end
// while the training thread computes: a thread of the synchronizer's own sees to them. Parameters
// change on the training thread only, within these calls.
//
// Errors: once a call failed, all later ones return the same error.
#ifndef SYNCOPATE_SYNC_SYNCHRONIZER_H_
#define SYNCOPATE_SYNC_SYNCHRONIZER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/iteration_times.h"
#include "model/tensor_table.h"
#include "observe/recorder.h"
#include "strategy/strategy.h"
#include "syncopate/syncopate.h"

namespace syncopate::sync {

// This worker's copy of the model, as the synchronizer reads and changes it. Called on the training
// thread, within calls of the synchronizer.
class Replica {
 public:
  virtual ~Replica() = default;
  // Writes the gradient or the parameters of a tensor, times `factor`. A tensor that had no part in
  // the backward pass has a gradient of 0.
  virtual void Pack(strategy::Content content, int tensor, double factor, std::byte* to) = 0;
  // Carries out an update of tensors first..last; from(tensor) is where the values that the update
  // takes from a transfer stand, null for kStepLocal.
  virtual void Apply(const strategy::ApplyUpdate& update,
                     const std::function<const std::byte*(int tensor)>& from) = 0;
  // The strategy wants batches of another size.
  virtual void SetBatch(uint64_t /*samples*/) {}
};

struct SynchronizerOptions {
  // The longest that the training thread waits in one call; transfers have their worker's own
  // timeout besides.
  absl::Duration timeout = absl::Minutes(5);
  observe::Recorder* recorder = nullptr;  // null: nothing is recorded
  int64_t first_iteration = 0;            // above 0 where a job goes on from a checkpoint
  // Called with every event and the commands that it led to, in order; for tests and logs.
  std::function<void(double now, const strategy::Event&, const std::vector<strategy::Command>&)>
      told = nullptr;
};

class Synchronizer {
 public:
  // `table` has the tensors' sizes and types. `worker` and `replica` must outlive the synchronizer.
  static absl::StatusOr<std::unique_ptr<Synchronizer>> Make(
      Worker& worker, const TensorTable& table, Replica& replica,
      std::unique_ptr<strategy::Strategy> strategy, const SynchronizerOptions& options);
  // Waits for what is under way, within its timeouts.
  ~Synchronizer();
  Synchronizer(const Synchronizer&) = delete;

  // `samples`: of this worker's batch. `all_samples`: of all workers together, or 0 if not known.
  absl::Status Begin(uint64_t samples, uint64_t all_samples);
  absl::Status Need(int tensor);
  absl::Status BackwardBegins();
  absl::Status Gradient(int tensor);
  absl::Status EndBackward();
  absl::Status Finish();

  // Sets the schedule from the next iteration on. To be called before Begin(), by all workers
  // before the same iteration and with the same schedule.
  absl::Status SetSchedule(std::shared_ptr<const Schedule> schedule);

  int64_t iterations() const;  // begun here so far
  // The times of the last iteration that has ended.
  const IterationTimes& times() const;
  // The transfers that ended since the last call. If they are very many, only the newest are kept.
  std::vector<EndedTransfer> TakeTransfers();
  uint64_t bytes_sent() const;  // of this worker's gradients and parameters, all transfers

 private:
  class Impl;
  explicit Synchronizer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace syncopate::sync

#endif  // SYNCOPATE_SYNC_SYNCHRONIZER_H_
