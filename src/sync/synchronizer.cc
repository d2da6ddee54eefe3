// Two threads meet here. The training thread makes the calls; the synchronizer's own thread tells
// the strategy about transfers that ended, what comes from outside and times that came. Every event
// goes to the strategy under mutex_, so it sees one sequence. Commands that touch the replica or let
// the training thread go on wait in pending_ until that thread is inside a call; all others are
// carried out at once by the thread that told the event. A transfer of parameters waits in pending_
// for the updates before it; if there are none, either thread packs and starts it.
//
// Packing and updating happen without mutex_. carrying_ says that a thread is at it, so that no
// update runs while parameters are packed and commands keep their order.
//
// The engine's callback leaves a note in inbox_ and never takes mutex_: it runs on the thread that
// drives the engine. The inbox's own mutex is taken last and held for moments.
#include "sync/synchronizer.h"

#include <algorithm>
#include <deque>
#include <numeric>
#include <optional>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/forked_child.h"
#include "base/mutex.h"
#include "base/status.h"
#include "model/tensor_layout.h"
#include "sync/live_transfers.h"
#include "sync/packed_values.h"
#include "sync/pass_times.h"
#include "sync/serving.h"
#include "sync/transfer_check.h"
#include "sync/transfer_inbox.h"
#include "worker/departures.h"
#include "worker/job_services.h"

namespace syncopate::sync {

using strategy::ApplyUpdate;
using strategy::Command;
using strategy::Content;
using strategy::Event;
using strategy::Movement;
using strategy::Proceed;
using strategy::StartTransfer;

namespace {

// A lost wake-up of the training thread, which should not happen, costs no more than this.
constexpr int64_t kSleepNs = 100'000'000;
// How often losses are looked for that no transfer tells of.
constexpr int64_t kLossWatchNs = 50'000'000;

double Seconds(int64_t ns) { return static_cast<double>(ns) * 1e-9; }

}  // namespace

class Synchronizer::Impl {
 public:
  Impl(Worker& worker, const TensorTable& table, Replica& replica,
       std::unique_ptr<strategy::Strategy> strategy, const SynchronizerOptions& options)
      : worker_(worker),
        replica_(replica),
        options_(options),
        tensors_(table.size()),
        packs_gradients_(options.moves_gradients &&
                         (worker.size() > 1 || options.store != nullptr)),
        values_(worker, table, replica),
        serving_topic_(Serving::Topic(worker::ServicesOf(worker).NextMessenger())),
        transfers_(worker, values_, inbox_, MonotonicClock(),
                   {.both = options.moves_gradients && options.moves_parameters,
                    .recorder = options.recorder,
                    .store = options.store,
                    .serving_topic = serving_topic_}),
        serving_(worker, serving_topic_, values_.layout(), tensors_, options.store, inbox_,
                 [this](const absl::Status& status) {
                   MutexLock lock(&mutex_);
                   FailIfNot(status);
                 }),
        strategy_(std::move(strategy)),
        ready_(static_cast<size_t>(tensors_), false),
        in_use_(static_cast<size_t>(tensors_), false),
        may_use_(static_cast<size_t>(tensors_), false),
        pass_(tensors_),
        times_(PassTimes(tensors_).times()) {}

  absl::Status Start() {
    MutexLock lock(&mutex_);
    if (options_.moves_gradients) {
      SYNCOPATE_RETURN_IF_ERROR(values_.Allocate(Content::kGradients));
    }
    if (worker_.size() > 1) SYNCOPATE_RETURN_IF_ERROR(transfers_.MakeGroups());
    // Gradients that go one way and parameters that go the other are those of a server, which this
    // worker may be, or be taken for.
    const bool both = options_.moves_gradients && options_.moves_parameters;
    if (worker_.size() > 1 && (options_.store != nullptr || both)) {
      SYNCOPATE_RETURN_IF_ERROR(serving_.Open());
    }
    helper_ = std::thread([this] { SeeToTransfers(); });
    return absl::OkStatus();
  }

  ~Impl() {
    serving_.Close();
    inbox_.Stop();
    if (helper_.joinable()) helper_.join();
  }

  bool in_forked_child() const { return made_here_.InChild(); }

  absl::Status Begin(uint64_t samples, uint64_t all_samples) {
    MutexLock lock(&mutex_);
    ++iteration_;
    factor_ = all_samples > 0 ? static_cast<double>(samples) / static_cast<double>(all_samples) : 0;
    may_use_.assign(may_use_.size(), false);
    in_use_.assign(in_use_.size(), false);
    pass_.Begin(NowNs());
    Tell(strategy::IterationBegan{
        .iteration = iteration_, .samples = samples, .all_samples = all_samples});
    return failure_;
  }

  absl::Status Need(int tensor) {
    MutexLock lock(&mutex_);
    pass_.Forward(tensor, NowNs());
    Tell(strategy::ForwardNeeds{tensor});
    const int64_t begin_ns = NowNs();
    // It is looked up before the wait: a transfer that has been applied is no longer known.
    const int transfer = transfers_.Of(tensor);
    const absl::Status status =
        WaitUntil([&] { return may_use_[static_cast<size_t>(tensor)]; }, tensor);
    in_use_[static_cast<size_t>(tensor)] = true;
    // Most calls find the tensor ready; only a real wait is recorded.
    if (options_.recorder != nullptr && waited_) {
      options_.recorder->RecordUntilNow(SpanKind::kWait, static_cast<int>(iteration_), transfer,
                                        begin_ns);
    }
    pass_.Resume(NowNs());
    return status;
  }

  absl::Status BackwardBegins() {
    MutexLock lock(&mutex_);
    pass_.Forward(-1, NowNs());
    ready_.assign(ready_.size(), false);
    gradients_of_ = iteration_;
    pass_.Resume(NowNs());
    return failure_;
  }

  absl::Status Gradient(int tensor) {
    const size_t t = static_cast<size_t>(tensor);
    double factor = 0;
    {
      MutexLock lock(&mutex_);
      pass_.Backward(tensor, NowNs());
      // A gradient that comes a second time, or too late, is not used: the first was taken, or 0.
      if (ready_[t]) return failure_;
      factor = factor_;
    }
    if (packs_gradients_) PackGradient(tensor, factor);
    MutexLock lock(&mutex_);
    ready_[t] = true;
    in_use_[t] = false;
    Tell(strategy::GradientReady{tensor});
    // Updates stay pending until a call waits; a transfer that is pending should start now.
    if (HasUrgent()) RunPending();
    pass_.Resume(NowNs());
    return failure_;
  }

  absl::Status EndBackward() {
    std::vector<int> missing;
    double factor = 0;
    {
      MutexLock lock(&mutex_);
      for (int tensor = tensors_ - 1; tensor >= 0; --tensor) {
        if (ready_[static_cast<size_t>(tensor)]) continue;
        missing.push_back(tensor);
        pass_.NoBackward(tensor);
      }
      factor = factor_;
    }
    // These tensors had no part in the backward pass. Other workers may have a gradient for them, so
    // zeros are sent.
    for (const int tensor : missing) {
      if (packs_gradients_) PackGradient(tensor, factor);
    }
    MutexLock lock(&mutex_);
    ready_.assign(ready_.size(), true);
    in_use_.assign(in_use_.size(), false);
    // The training thread alone reads times_, without the lock, so it gets a copy here.
    times_ = pass_.times();
    Tell(strategy::BackwardEnded{});
    if (HasUrgent()) RunPending();
    return failure_;
  }

  absl::Status Finish() {
    MutexLock lock(&mutex_);
    drained_ = false;
    in_use_.assign(in_use_.size(), false);
    Tell(strategy::Drain{});
    const int64_t begin_ns = NowNs();
    const absl::Status status = WaitUntil([&] { return drained_; }, -1);
    if (options_.recorder != nullptr && waited_) {
      options_.recorder->RecordUntilNow(SpanKind::kWait, static_cast<int>(iteration_), -1,
                                        begin_ns);
    }
    return status;
  }

  absl::Status SetSchedule(std::shared_ptr<const Schedule> schedule) {
    SYNCOPATE_RETURN_IF_ERROR(Validate(*schedule, tensors_));
    MutexLock lock(&mutex_);
    Tell(strategy::NewValue{std::move(schedule), iteration_ + 1});
    return failure_;
  }

  void Deliver(Event event) { inbox_.Add(std::move(event)); }

  int64_t iterations() const {
    MutexLock lock(&mutex_);
    return iteration_ + 1 - options_.first_iteration;
  }
  const IterationTimes& times() const { return times_; }  // by the training thread only
  std::vector<EndedTransfer> TakeTransfers() {
    MutexLock lock(&mutex_);
    return transfers_.TakeEnded();
  }
  uint64_t bytes_sent() const {
    MutexLock lock(&mutex_);
    return transfers_.bytes_sent();
  }

 private:
  // A command for the training thread.
  struct Pending {
    Command command = {};
    std::vector<int> tensors = {};  // of an update: those that are left to do
    double squared = 0;             // of an update: the distance so far
  };

  int64_t NowNs() const { return MonotonicClock().NowNs(); }

  // By the training thread, without the lock: nobody else touches the tensor's gradient, and no
  // transfer reads its place in the buffer now, because Need() or Finish() has waited for its last
  // one.
  void PackGradient(int tensor, double share) {
    const int64_t begin_ns = NowNs();
    values_.PackGradient(tensor, share);
    if (options_.recorder != nullptr) {
      // iteration_ changes on this thread only, in Begin().
      options_.recorder->RecordUntilNow(SpanKind::kPack, static_cast<int>(Iteration()), tensor,
                                        begin_ns);
    }
  }
  int64_t Iteration() const ABSL_NO_THREAD_SAFETY_ANALYSIS { return iteration_; }

  // ---- events and commands

  // After a failure the strategy is told nothing more, since every later call returns that error.
  void Tell(const Event& event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!failure_.ok()) return;
    strategy::Decision decision{.now = Seconds(NowNs()), .event = event, .commands = {}};
    strategy_->Step(decision.now, event, decision.commands);
    if (options_.witness != nullptr) options_.witness->Decided(decision);
    for (Command& command : decision.commands) std::visit([&](auto& c) { Take(c); }, command);
  }

  void Fail(absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (failure_.ok()) failure_ = std::move(status);
    news_.SignalAll();
  }
  void FailIfNot(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!status.ok()) Fail(At(absl::StrCat("strategy ", strategy_->name()), status));
  }

  // Wakes the training thread, if it waits.
  void AddPending(Pending pending) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    pending_.push_back(std::move(pending));
    news_.SignalAll();
  }

  void Take(StartTransfer& start) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    FailIfNot(CheckTransfer(start,
                            {.rank = worker_.rank(),
                             .size = worker_.size(),
                             .tensors = tensors_,
                             .moves_gradients = options_.moves_gradients,
                             .moves_parameters = options_.moves_parameters,
                             .has_store = options_.store != nullptr},
                            values_.layout()));
    if (!failure_.ok()) return;
    // Gradients are packed already. Parameters must be packed after the updates that come before
    // this command, so the transfer goes through the same queue.
    if (start.content == Content::kParameters) return AddPending({std::move(start)});
    StartCalls(start);
  }
  void Take(ApplyUpdate& apply) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    std::vector<int> tensors(static_cast<size_t>(apply.last - apply.first + 1));
    std::iota(tensors.begin(), tensors.end(), apply.first);
    AddPending({apply, std::move(tensors)});
  }
  void Take(Proceed& proceed) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { AddPending({proceed}); }
  void Take(strategy::SetBatch& batch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    AddPending({batch});
  }
  void Take(strategy::SetProgress& progress) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    AddPending({progress});
  }
  void Take(strategy::Drained& drained) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    AddPending({drained});
  }
  void Take(strategy::Fail& fail) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { Fail(fail.status); }
  void Take(strategy::WakeAt& wake) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    inbox_.WakeAt(static_cast<int64_t>(wake.seconds * 1e9));
  }
  void Take(strategy::AskService& ask) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    FailIfNot(options_.messenger != nullptr
                  ? options_.messenger->Ask(ask)
                  : absl::UnimplementedError(absl::StrCat("it asks the service ", ask.service,
                                                          ", and this job has no services yet")));
  }
  void Take(strategy::SendMessage& send) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    FailIfNot(options_.messenger != nullptr
                  ? options_.messenger->Send(send)
                  : absl::UnimplementedError(
                        absl::StrCat("it sends a message to worker ", send.to,
                                     ", and this job carries no messages between strategies yet")));
  }

  // Whether the training thread should carry out what is pending now, in the backward pass: a
  // transfer waits among it, or the next batch depends on it.
  bool HasUrgent() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return std::any_of(pending_.begin(), pending_.end(), [](const Pending& pending) {
      return std::holds_alternative<StartTransfer>(pending.command) ||
             std::holds_alternative<strategy::SetBatch>(pending.command) ||
             std::holds_alternative<strategy::SetProgress>(pending.command);
    });
  }

  // The training thread carries out here what must not happen while it computes, in the order of the
  // commands. Updates of tensors that the pass uses are left for later, and with them the transfers
  // that would send these tensors and all that come after.
  void RunPending() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (pending_.empty()) return;
    while (carrying_) news_.WaitFor(&mutex_, std::chrono::nanoseconds(kSleepNs));
    std::vector<bool> left(static_cast<size_t>(tensors_), false);
    bool starts_are_held = false;
    for (size_t i = 0; i < pending_.size() && failure_.ok();) {
      Pending& pending = pending_[i];
      if (const auto* start = std::get_if<StartTransfer>(&pending.command)) {
        for (const int tensor : values_.TensorsOf(*start)) {
          starts_are_held |= left[static_cast<size_t>(tensor)];
        }
        if (starts_are_held) {
          ++i;
          continue;
        }
      }
      Pending taken = std::move(pending);
      if (std::holds_alternative<ApplyUpdate>(taken.command)) {
        const std::vector<int> later = TakeThoseInUse(taken.tensors);
        if (!later.empty()) {
          for (const int tensor : later) left[static_cast<size_t>(tensor)] = true;
          // Its place in the queue, and the result that it needs, stay.
          pending_[i] = {taken.command, later, taken.squared};
          if (!taken.tensors.empty()) {
            const double squared = ApplyRuns(taken);
            pending_[i].squared += squared;
          }
          ++i;
          continue;
        }
      }
      pending_.erase(pending_.begin() + static_cast<ptrdiff_t>(i));
      Carry(taken);
    }
  }

  // The synchronizer's own thread starts transfers of parameters that wait for no update.
  void RunPendingStarts() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    while (!carrying_ && !pending_.empty() && failure_.ok() &&
           std::holds_alternative<StartTransfer>(pending_.front().command)) {
      Pending taken = std::move(pending_.front());
      pending_.pop_front();
      Carry(taken);
    }
  }

  void Carry(Pending& taken) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (auto* apply = std::get_if<ApplyUpdate>(&taken.command)) {
      const double squared = taken.squared + ApplyRuns(taken);
      if (apply->measure) Tell(strategy::Updated{apply->transfer, squared});
    } else if (auto* proceed = std::get_if<Proceed>(&taken.command)) {
      may_use_[static_cast<size_t>(proceed->tensor)] = true;
    } else if (auto* batch = std::get_if<strategy::SetBatch>(&taken.command)) {
      FailIfNot(replica_.SetBatch(batch->samples));
    } else if (auto* progress = std::get_if<strategy::SetProgress>(&taken.command)) {
      FailIfNot(replica_.SetProgress(*progress));
    } else if (std::holds_alternative<strategy::Drained>(taken.command)) {
      drained_ = true;
    } else if (auto* start = std::get_if<StartTransfer>(&taken.command)) {
      FailIfNot(PackParameters(*start));
      if (failure_.ok()) StartCalls(*start);
    }
  }

  // Removes those that are in use, and returns them.
  std::vector<int> TakeThoseInUse(std::vector<int>& tensors) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    std::vector<int> used;
    std::erase_if(tensors, [&](int tensor) {
      if (!in_use_[static_cast<size_t>(tensor)]) return false;
      used.push_back(tensor);
      return true;
    });
    return used;
  }

  // ---- updates

  // Applies an update to the tensors that are left of it, in runs, and returns the squared distance.
  double ApplyRuns(const Pending& pending) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const ApplyUpdate& apply = std::get<ApplyUpdate>(pending.command);
    const bool local = apply.update == strategy::Update::kStepLocal;
    const LiveTransfers::Transfer* const transfer = transfers_.BroughtBy(apply.transfer);
    const bool add = apply.update == strategy::Update::kAddChange;
    if (!local && transfer == nullptr) {
      Refuse(apply, "that transfer has brought nothing");
      return 0;
    }
    if (add && !transfer->start.keep_sent) {
      Refuse(apply, "what that transfer sent was not kept");
      return 0;
    }
    const Content content = local ? Content::kGradients : transfer->start.content;
    const int64_t iteration = local ? iteration_ : transfer->iteration;
    const Brought brought = values_.BroughtOf(apply, content);
    // Updating takes long, so the lock is released and transfers go on meanwhile.
    carrying_ = true;
    mutex_.Unlock();
    const int64_t begin_ns = NowNs();
    double squared = 0;
    std::vector<Witness::Update> runs;
    for (size_t i = 0; i < pending.tensors.size();) {
      ApplyUpdate run = apply;
      run.first = run.last = pending.tensors[i];
      while (++i < pending.tensors.size() && pending.tensors[i] == run.last + 1) ++run.last;
      Witness::Update update{.apply = run, .iteration = iteration, .begin = Seconds(NowNs())};
      update.squared_distance = replica_.Apply(run, brought);
      update.end = Seconds(NowNs());
      squared += update.squared_distance;
      runs.push_back(update);
    }
    const int64_t end_ns = NowNs();
    if (options_.recorder != nullptr) {
      options_.recorder->Record({.kind = SpanKind::kUpdate,
                                 .iteration = static_cast<int>(iteration),
                                 .id = static_cast<int>(apply.transfer),
                                 .begin_ns = begin_ns,
                                 .end_ns = end_ns});
    }
    mutex_.Lock();
    carrying_ = false;
    news_.SignalAll();
    if (!local) transfers_.Applied(content, pending.tensors);
    for (const Witness::Update& run : runs) {
      if (options_.witness != nullptr) options_.witness->Applied(run);
    }
    return squared;
  }

  void Refuse(const ApplyUpdate& apply, absl::string_view why)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    Fail(absl::InternalError(
        absl::StrCat("strategy ", strategy_->name(), ": ", ToText(Command(apply)), ": ", why)));
  }

  // Memory for parameters is allocated when a strategy first sends any. The lock is released while
  // they are packed; no update runs then.
  absl::Status PackParameters(const StartTransfer& start) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    SYNCOPATE_RETURN_IF_ERROR(values_.Allocate(Content::kParameters, start.keep_sent));
    carrying_ = true;
    mutex_.Unlock();
    // What is pulled comes in its place.
    if (start.movement != Movement::kPull || start.keep_sent) values_.PackParameters(start);
    mutex_.Lock();
    carrying_ = false;
    news_.SignalAll();
    return absl::OkStatus();
  }

  // ---- transfers

  void StartCalls(const StartTransfer& start) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    transfers_.Start(start, {.iteration = gradients_of_, .share = factor_});
  }

  void CallEnded(const EndedCall& ended) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (const std::function<void()> last_step = transfers_.LastStep(ended)) {
      mutex_.Unlock();
      last_step();
      mutex_.Lock();
    }
    const std::optional<LiveTransfers::Transfer> transfer = transfers_.CallEnded(ended);
    if (!transfer) return;
    const double begin = Seconds(transfer->begin_ns), end = Seconds(transfer->end_ns);
    if (options_.witness != nullptr) {
      options_.witness->Transferred({.start = transfer->start,
                                     .iteration = transfer->iteration,
                                     .bytes = transfer->bytes,
                                     .begin = begin,
                                     .end = end,
                                     .status = transfer->status});
    }
    if (!transfer->status.ok()) return TransferFailed(ended.transfer, transfer->status);
    Tell(strategy::TransferDone{.transfer = ended.transfer,
                                .first_byte = begin,
                                .last_byte = end,
                                .bytes = transfer->bytes});
  }

  // A worker to blame that is lost is told first; one that was only late is not lost. Errors that
  // blame nobody, or with which this worker is out of the job, are no business of the strategy's.
  void TransferFailed(int64_t id, const absl::Status& status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!GetSuspect(status) || GetBlast(status) == BlastRadius::kJob) return Fail(status);
    TellLosses(status);
    Tell(strategy::TransferFailed{id, status});
  }

  // In the order on which all survivors agree. `why` explains the loss of its suspect.
  void TellLosses(const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    looked_for_losses_ns_ = NowNs();
    for (const worker::Departure& departure : worker::DeparturesOf(worker_)) {
      const int rank = departure.rank;
      if (!transfers_.Lose(rank)) continue;
      if (rank == worker_.rank()) {
        Fail(WithBlast(absl::AbortedError("this worker is out of the job"), BlastRadius::kJob,
                       rank));
        return;
      }
      if (departure.left) {
        Tell(strategy::WorkerLeft{rank});
        continue;
      }
      Tell(strategy::WorkerLost{rank, GetSuspect(why) == rank
                                          ? why
                                          : WithBlast(absl::UnavailableError(absl::StrCat(
                                                          "worker ", rank, " ", departure.cause)),
                                                      BlastRadius::kGroup, rank)});
    }
  }

  void TellFromOutside(const Event& event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (const auto* left = std::get_if<strategy::WorkerLeft>(&event)) transfers_.Lose(left->rank);
    Tell(event);
  }

  // What the synchronizer's own thread runs: it tells the strategy which transfers ended, what has
  // come from outside and that a time has come.
  void SeeToTransfers() {
    for (;;) {
      const TransferInbox::News news = inbox_.Take();
      if (news.over) return;
      for (const TransferInbox::Item& item : news.items) {
        if (const auto* task = std::get_if<TransferInbox::Task>(&item)) {
          task->run();
          continue;
        }
        MutexLock lock(&mutex_);
        if (const auto* ended = std::get_if<EndedCall>(&item)) {
          CallEnded(*ended);
        } else {
          TellFromOutside(std::get<Event>(item));
        }
      }
      MutexLock lock(&mutex_);
      for (size_t i = 0; i < news.times_passed; ++i) Tell(strategy::TimePassed{});
      if (options_.watches_losses && NowNs() - looked_for_losses_ns_ >= kLossWatchNs) {
        TellLosses(absl::OkStatus());
      }
      RunPendingStarts();
    }
  }

  // The training thread waits here until `condition` holds, and carries out what is pending: the
  // condition comes true only by that.
  absl::Status WaitUntil(const std::function<bool()>& condition, int tensor)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const int64_t deadline_ns = NowNs() + absl::ToInt64Nanoseconds(options_.timeout);
    waited_ = false;
    for (;;) {
      RunPending();
      if (!failure_.ok()) return failure_;
      if (condition()) return absl::OkStatus();
      const int64_t left_ns = deadline_ns - NowNs();
      if (left_ns <= 0) {
        Fail(absl::DeadlineExceededError(absl::StrCat(
            "strategy ", strategy_->name(), ": worker ", worker_.rank(), " waited ",
            absl::FormatDuration(options_.timeout), " in iteration ", iteration_, " for ",
            tensor < 0 ? std::string("the end of what is under way")
                       : absl::StrCat("tensor ", tensor))));
        return failure_;
      }
      waited_ = true;
      news_.WaitFor(&mutex_, std::chrono::nanoseconds(std::min(left_ns, kSleepNs)));
    }
  }

  Worker& worker_;
  Replica& replica_;
  const SynchronizerOptions options_;
  const int tensors_;
  const bool packs_gradients_;
  // Gradients are packed by the training thread, parameters by whoever has carrying_.
  PackedValues values_;
  const std::string serving_topic_;
  TransferInbox inbox_{MonotonicClock()};

  mutable Mutex mutex_;
  CondVar news_;  // for the training thread
  // Declared after what its transfers use until they have ended.
  LiveTransfers transfers_ ABSL_GUARDED_BY(mutex_);
  Serving serving_;
  std::unique_ptr<strategy::Strategy> strategy_ ABSL_GUARDED_BY(mutex_);
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  std::deque<Pending> pending_ ABSL_GUARDED_BY(mutex_);  // in the order of the commands
  // A thread packs parameters or applies an update, without the lock.
  bool carrying_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t looked_for_losses_ns_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t iteration_ ABSL_GUARDED_BY(mutex_) = options_.first_iteration - 1;
  int64_t gradients_of_ ABSL_GUARDED_BY(mutex_) = -1;  // the iteration that made what moves
  double factor_ ABSL_GUARDED_BY(mutex_) = 0;          // this batch's share of all; 0: not known
  // By tensor, in this iteration: its gradient is there, or it had no part in the backward pass.
  std::vector<bool> ready_ ABSL_GUARDED_BY(mutex_);
  // By tensor: the forward pass has used it, and its gradient is not there yet.
  std::vector<bool> in_use_ ABSL_GUARDED_BY(mutex_);
  std::vector<bool> may_use_ ABSL_GUARDED_BY(mutex_);
  bool drained_ ABSL_GUARDED_BY(mutex_) = false;
  bool waited_ ABSL_GUARDED_BY(mutex_) = false;  // the last WaitUntil() really did
  PassTimes pass_ ABSL_GUARDED_BY(mutex_);
  IterationTimes times_;  // of the last iteration; by the training thread only

  std::thread helper_;
  const ForkMark made_here_;
};

absl::StatusOr<std::unique_ptr<Synchronizer>> Synchronizer::Make(
    Worker& worker, const TensorTable& table, Replica& replica,
    std::unique_ptr<strategy::Strategy> strategy, const SynchronizerOptions& options) {
  SYNCOPATE_RETURN_IF_ERROR(Validate(table));
  auto impl = std::make_unique<Impl>(worker, table, replica, std::move(strategy), options);
  SYNCOPATE_RETURN_IF_ERROR(impl->Start());
  return std::unique_ptr<Synchronizer>(new Synchronizer(std::move(impl)));
}

Synchronizer::Synchronizer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Synchronizer::~Synchronizer() {
  // A forked child has none of its threads.
  if (impl_ != nullptr && impl_->in_forked_child()) {
    (void)impl_.release();
    (void)messenger_.release();
  }
  if (messenger_ != nullptr) messenger_->Stop();
}
absl::Status Synchronizer::Begin(uint64_t samples, uint64_t all_samples) {
  return impl_->Begin(samples, all_samples);
}
absl::Status Synchronizer::Need(int tensor) { return impl_->Need(tensor); }
absl::Status Synchronizer::BackwardBegins() { return impl_->BackwardBegins(); }
absl::Status Synchronizer::Gradient(int tensor) { return impl_->Gradient(tensor); }
absl::Status Synchronizer::EndBackward() { return impl_->EndBackward(); }
absl::Status Synchronizer::Finish() { return impl_->Finish(); }
absl::Status Synchronizer::SetSchedule(std::shared_ptr<const Schedule> schedule) {
  return impl_->SetSchedule(std::move(schedule));
}
void Synchronizer::Deliver(strategy::Event event) { impl_->Deliver(std::move(event)); }
int64_t Synchronizer::iterations() const { return impl_->iterations(); }
const IterationTimes& Synchronizer::times() const { return impl_->times(); }
std::vector<EndedTransfer> Synchronizer::TakeTransfers() { return impl_->TakeTransfers(); }
uint64_t Synchronizer::bytes_sent() const { return impl_->bytes_sent(); }

}  // namespace syncopate::sync
