// What a synchronizer is made of. synchronizer.cc has the calls of the training loop,
// synchronizer_commands.cc the strategy's commands and updates, synchronizer_transfers.cc the transfers
// and what comes beside them.
//
// Two threads meet here. The training thread makes the calls. The worker's control thread tells the
// strategy about transfers that ended, unless the training thread waits and does so itself, and about
// what comes from outside and times that came. Every event goes to the strategy under mutex_, so it sees
// one sequence. Commands that touch the replica or let the training thread go on wait in pending_ until
// that thread is inside a call; all others are carried out at once by the thread that told the event. A
// transfer of parameters waits in pending_ for the updates before it; if there are none, either thread
// packs and starts it.
//
// Packing and updating happen without mutex_. carrying_ says that a thread is at it, so that no
// update runs while parameters are packed and commands keep their order.
//
// The control thread sends the worker's heartbeats, so nothing that runs on it may wait or take long.
// What takes long is done there in pieces (long_work.h). Nothing is done under mutex_ that waits or takes
// long either, on whichever thread: calls that would have to wait are held (call_queue.h).
//
// The engine's callback leaves a note in inbox_ and never takes mutex_: it runs on the thread that
// drives the engine. The inbox's own mutex is taken last and held for moments.
#ifndef SYNCOPATE_SYNC_SYNCHRONIZER_IMPL_H_
#define SYNCOPATE_SYNC_SYNCHRONIZER_IMPL_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "base/forked_child.h"
#include "base/mutex.h"
#include "strategy/command.h"
#include "strategy/event.h"
#include "sync/agreed_values.h"
#include "sync/control_tasks.h"
#include "sync/live_transfers.h"
#include "sync/long_work.h"
#include "sync/packed_values.h"
#include "sync/pass_times.h"
#include "sync/serving.h"
#include "sync/synchronizer.h"
#include "sync/transfer_inbox.h"
#include "worker/mailbox.h"
#include "worker/network.h"

namespace syncopate::sync {

using strategy::ApplyUpdate;
using strategy::Command;
using strategy::Content;
using strategy::Event;
using strategy::Movement;
using strategy::Proceed;
using strategy::StartTransfer;

class Synchronizer::Impl {
 public:
  Impl(Worker& worker, const TensorTable& table, Replica& replica,
       std::unique_ptr<strategy::Strategy> strategy, const SynchronizerOptions& options);

  absl::Status Start();

  // What has ended is still told: nothing of it is left to the control thread after this.
  ~Impl();

  bool in_forked_child() const { return made_here_.InChild(); }

  absl::Status Begin(uint64_t samples, uint64_t all_samples);

  absl::Status Need(int tensor);

  absl::Status BackwardBegins();

  absl::Status Gradient(int tensor);

  absl::Status EndBackward();

  absl::Status Finish();

  absl::StatusOr<std::string> StrategyState() const;
  absl::StatusOr<std::string> ServiceState();

  absl::Status SetSchedule(std::shared_ptr<const Schedule> schedule);
  void AgreeOnSchedules() { agreed_.BeginSchedules(std::max<int64_t>(0, Iteration())); }
  absl::Status Propose(std::shared_ptr<const Schedule> schedule);
  std::shared_ptr<const Schedule> schedule() const;

  void Deliver(Event event) { inbox_.Add(std::move(event)); }
  void End(absl::Status why) { inbox_.Add(std::move(why)); }

  int64_t iterations() const;
  // By the training thread only.
  const IterationTimes& times() const { return times_; }
  std::vector<EndedTransfer> TakeTransfers();
  uint64_t bytes_sent() const;

 private:
  // A command for the training thread.
  struct Pending {
    Command command = {};
    std::vector<int> tensors = {};  // of an update: those that are left to do
    double squared = 0;             // of an update: the distance so far
  };

  int64_t NowNs() const { return MonotonicClock().NowNs(); }
  std::string LossTopic() const;

  // A version of the network counts for programs from a call on; strategies have it from an iteration on,
  // which rank 0 proposes when it knows of the version.
  void FollowNetwork();

  // By the training thread, without the lock: nobody else touches the tensor's gradient, and no
  // transfer reads its place in the buffer now, because Need() or Finish() has waited for its last
  // one.
  void PackGradient(int tensor, double share);
  int64_t Iteration() const ABSL_NO_THREAD_SAFETY_ANALYSIS { return iteration_; }

  // ---- events and commands

  // After a failure the strategy is told nothing more, since every later call returns that error.
  void Tell(const Event& event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  void TellValue(strategy::NewValue value) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  void Fail(absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FailIfNot(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Wakes the training thread, if it waits.
  void AddPending(Pending pending) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  void Take(StartTransfer& start) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Take(ApplyUpdate& apply) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Take(Proceed& proceed) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { AddPending({proceed}); }
  void Take(strategy::SetBatch& batch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Take(strategy::SetProgress& progress) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Take(strategy::Drained& drained) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Take(strategy::Fail& fail) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { Fail(fail.status); }
  void Take(strategy::WakeAt& wake) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Take(strategy::AskService& ask) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Take(strategy::SendMessage& send) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Whether the training thread should carry out what is pending now, in the backward pass: a
  // transfer waits among it, or the next batch depends on it.
  bool HasUrgent() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // The training thread carries out here what must not happen while it computes, in the order of the
  // commands. Updates of tensors that the pass uses are left for later, and with them the transfers
  // that would send these tensors and all that come after.
  void RunPending() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // On the control thread: packs and starts transfers of parameters that wait for no update, one after
  // the other.
  void RunPendingStarts() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  void Carry(Pending& taken) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Removes those that are in use, and returns them.
  std::vector<int> TakeThoseInUse(std::vector<int>& tensors) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // ---- updates

  // Applies an update to the tensors that are left of it, in runs, and returns the squared distance.
  double ApplyRuns(const Pending& pending) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  void Refuse(const ApplyUpdate& apply, absl::string_view why)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // What is pulled comes in its place.
  static bool MustPack(const StartTransfer& start);

  // By the training thread. Memory for parameters is allocated when a strategy first sends any. The lock
  // is released while that takes long and while they are packed; no update runs then.
  absl::Status PackParameters(const StartTransfer& start) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // ---- transfers

  void StartCalls(const StartTransfer& start) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void StartHeldLater();

  // What adds up the values of an exchange takes long; its transfer ends after it.
  void CallEnded(const EndedCall& ended) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  void EndCall(const EndedCall& ended) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // A worker to blame that is lost is told first; one that was only late is not lost. Errors that
  // blame nobody, or with which this worker is out of the job, are no business of the strategy's.
  void TransferFailed(int64_t id, const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // In the order on which all survivors agree. `why` explains the loss of its suspect.
  void TellLosses(const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  void TellFromOutside(const Event& event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Tells the strategy which transfers ended and what has come from outside.
  void TellNews() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  int64_t DeadlineNs() const { return NowNs() + absl::ToInt64Nanoseconds(options_.timeout); }

  // The training thread waits for news of any kind, and tells the strategy what there is to tell. False:
  // there was none before the deadline.
  bool AwaitNews(int64_t deadline_ns) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  void FailLate(absl::string_view what) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // The training thread waits here until `condition` holds, and carries out what is pending: the
  // condition comes true only by that.
  absl::Status WaitUntil(const std::function<bool()>& condition, int tensor)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Worker& worker_;
  Replica& replica_;
  const SynchronizerOptions options_;
  const int tensors_;
  const bool packs_gradients_;
  const bool serves_;  // this worker is a server
  // Gradients are packed by the training thread, parameters by whoever has carrying_.
  PackedValues values_;
  // All workers make their synchronizers in the same order, so this one is the same everywhere.
  const int number_;
  AgreedValues agreed_;
  ControlTasks control_;
  LongWork work_{control_, MonotonicClock()};
  TransferInbox inbox_{MonotonicClock(), [this] {
                         control_.Do([this] {
                           MutexLock lock(&mutex_);
                           TellNews();
                           RunPendingStarts();
                         });
                       }};
  bool hears_losses_ = false;  // used while it is made and ended

  mutable Mutex mutex_;
  // Declared after what its transfers use until they have ended.
  LiveTransfers transfers_ ABSL_GUARDED_BY(mutex_);
  Serving serving_;
  std::unique_ptr<strategy::Strategy> strategy_ ABSL_GUARDED_BY(mutex_);
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  std::deque<Pending> pending_ ABSL_GUARDED_BY(mutex_);  // in the order of the commands
  // A thread packs parameters or applies an update, without the lock.
  bool carrying_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t iteration_ ABSL_GUARDED_BY(mutex_) = options_.first_iteration - 1;
  int64_t gradients_of_ ABSL_GUARDED_BY(mutex_) = -1;    // the iteration that made what moves
  double gradients_factor_ ABSL_GUARDED_BY(mutex_) = 0;  // of that iteration
  double factor_ ABSL_GUARDED_BY(mutex_) = 0;            // this batch's share of all; 0: not known
  // By tensor, in this iteration: its gradient is there, or it had no part in the backward pass.
  std::vector<bool> ready_ ABSL_GUARDED_BY(mutex_);
  // By tensor: the forward pass has used it, and its gradient is not there yet.
  std::vector<bool> in_use_ ABSL_GUARDED_BY(mutex_);
  std::vector<bool> may_use_ ABSL_GUARDED_BY(mutex_);
  std::deque<std::pair<int64_t, std::shared_ptr<const Schedule>>> schedules_
      ABSL_GUARDED_BY(mutex_);  // the one that counts and those to come, by their first iteration
  bool drained_ ABSL_GUARDED_BY(mutex_) = false;
  bool waited_ ABSL_GUARDED_BY(mutex_) = false;  // the last WaitUntil() really did
  PassTimes pass_ ABSL_GUARDED_BY(mutex_);
  IterationTimes times_;                  // of the last iteration; by the training thread only
  std::optional<uint64_t> wanted_batch_;  // that all are to agree on; by the training thread only
  // That the strategy plans by as far as it is told; by the training thread only.
  std::optional<uint64_t> network_version_ = worker::FirstNetworkVersion(worker_);

  const ForkMark made_here_;
};

}  // namespace syncopate::sync

#endif  // SYNCOPATE_SYNC_SYNCHRONIZER_IMPL_H_
