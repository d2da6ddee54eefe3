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
// tensors, which collectives read in place, so packing is the only copy; where the strategy sends no
// gradients none are packed. Transfers start and end while the training thread computes: the worker's
// control thread sees to them. Parameters change on the training thread only, within these
// calls, and never those of a tensor that the pass that runs has used and not yet made a gradient
// of.
//
// Errors: once a call failed, all later ones return the same error.
#ifndef SYNCOPATE_SYNC_SYNCHRONIZER_H_
#define SYNCOPATE_SYNC_SYNCHRONIZER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/iteration_times.h"
#include "model/tensor_table.h"
#include "observe/recorder.h"
#include "strategy/strategy.h"
#include "strategy/witness.h"
#include "sync/parameter_store.h"
#include "sync/replica.h"
#include "sync/resumed_state.h"
#include "syncopate/syncopate.h"

namespace syncopate::sync {

// Carries what a strategy says beside transfers; answers and messages come back by
// Synchronizer::Deliver(), and what ends the job by Synchronizer::End(). Called on any thread, while the
// strategy waits: both must be quick and must not call the synchronizer.
class Messenger {
 public:
  virtual ~Messenger() = default;
  virtual absl::Status Ask(const strategy::AskService& ask) = 0;
  virtual absl::Status Send(const strategy::SendMessage& send) = 0;
  // When this returns, nothing is delivered any more.
  virtual void Stop() {}
};

using strategy::Witness;

struct SynchronizerOptions {
  // The longest that the training thread waits in one call; transfers have their worker's own
  // timeout besides.
  absl::Duration timeout = absl::Minutes(5);
  observe::Recorder* recorder = nullptr;  // null: nothing is recorded
  int64_t first_iteration = 0;            // above 0 where a job goes on from a checkpoint
  // What the strategy goes on from then. MakeSynchronizer() sees to the service.
  ResumedState resumed = {};
  // What the worker calls the service that was made for this synchronizer; empty: none was. MakeSynchronizer()
  // sets it.
  std::string own_service = {};
  // Whether the strategy sends any gradients, and any parameters.
  bool moves_gradients = true;
  bool moves_parameters = true;
  // Whether the strategy hears of a lost worker also where no transfer of this worker needs it. A
  // strategy that ends with the first loss is better off without: it may have all it needs already.
  bool watches_losses = false;
  // Whether the strategy sets batches of samples that are dealt out in step: then all workers agree on
  // them, and Replica::SetBatches() is told those of all.
  bool agrees_on_batches = false;
  Messenger* messenger = nullptr;  // null: a strategy that asks or sends gets Unimplemented
  // The ranks that serve: averages of all live training ranks are without them.
  std::vector<int> servers = {};
  // What other workers, and this one, push to and pull from here; null: this worker serves nobody.
  // It is used on the worker's control thread, and by ~Synchronizer() for what is left to do then.
  // MakeSynchronizer() makes one for the worker that serves, unless there is one here; that takes steps of
  // store_rate with what is pushed.
  ParameterStore* store = nullptr;
  double store_rate = 0.1;
  Witness* witness = nullptr;
};

class Synchronizer {
 public:
  // `table` has the tensors' sizes and types. `worker`, `replica` and what the options name must
  // outlive the synchronizer. MakeSynchronizer() (sync/assemble.h) makes one for a strategy's name.
  static absl::StatusOr<std::unique_ptr<Synchronizer>> Make(
      Worker& worker, const TensorTable& table, Replica& replica,
      std::unique_ptr<strategy::Strategy> strategy, const SynchronizerOptions& options);
  // Does what the control thread has not come to, and waits for what is under way, within its timeouts. Not on
  // the control thread.
  ~Synchronizer();
  Synchronizer(const Synchronizer&) = delete;

  // `samples`: of this worker's batch. `all_samples`: of all workers together, or 0 if not known.
  absl::Status Begin(uint64_t samples, uint64_t all_samples);
  absl::Status Need(int tensor);
  absl::Status BackwardBegins();
  absl::Status Gradient(int tensor);
  absl::Status EndBackward();
  absl::Status Finish();

  // What the strategy has to know if the job goes on from here later. After Finish(), before the next
  // Begin().
  absl::StatusOr<std::string> StrategyState() const;
  // The same of the service that was made for this synchronizer, with its moment (ServiceStateOf()); empty:
  // there is none. Waits for the answer.
  absl::StatusOr<std::string> ServiceState();

  // Sets the schedule from the next iteration on. To be called before Begin(), by all workers
  // before the same iteration and with the same schedule: for whoever plays schedules that all know.
  absl::Status SetSchedule(std::shared_ptr<const Schedule> schedule);
  // Takes part from now on in agreements on schedules. Every worker calls it, before its next Begin(), at
  // an iteration of its own; nobody can propose one before.
  void AgreeOnSchedules();
  // Has all workers use the schedule from some iteration on that none of them has begun; their strategies
  // are told by NewValue. By one worker. Returns at once; if the workers cannot agree nobody uses it.
  absl::Status Propose(std::shared_ptr<const Schedule> schedule);
  // What counts for the iteration that has begun last; null: what the strategy was made with.
  std::shared_ptr<const Schedule> schedule() const;
  // Tells the strategy what comes from outside: an answer, a message, a worker that left or joined, a
  // value that was agreed on. Returns at once; from any thread.
  void Deliver(strategy::Event event);
  // Nothing can go on: the call that waits and every later one return this error, and the strategy is told
  // nothing more. Returns at once; from any thread.
  void End(absl::Status why);

  // Keeps the messenger of the options, which delivers to it, until its own end, and their store beyond that.
  void Keep(std::unique_ptr<Messenger> messenger) { messenger_ = std::move(messenger); }
  void Keep(std::unique_ptr<ParameterStore> store) { store_ = std::move(store); }

  int64_t iterations() const;  // begun here so far
  // The times of the last iteration that has ended.
  const IterationTimes& times() const;
  // The transfers that ended since the last call. If they are very many, only the newest are kept.
  std::vector<EndedTransfer> TakeTransfers();
  uint64_t bytes_sent() const;  // of this worker's gradients and parameters, all transfers

 private:
  class Impl;
  explicit Synchronizer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Messenger> messenger_;  // of Keep()
  std::unique_ptr<ParameterStore>
      store_;  // of Keep(); what is left to do with it is done before its end
  std::unique_ptr<Impl> impl_;
};

}  // namespace syncopate::sync

#endif  // SYNCOPATE_SYNC_SYNCHRONIZER_H_
