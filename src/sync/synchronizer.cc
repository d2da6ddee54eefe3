// Two threads meet here. The training thread makes the calls; the synchronizer's own thread tells
// the strategy about transfers that ended and times that came. Every event goes to the strategy
// under mutex_, so it sees one sequence. Commands that touch the replica or let the training thread
// go on wait in pending_ until that thread is inside a call; all others are carried out at once by
// the thread that told the event.
//
// The engine's callback leaves a note in inbox_ and never takes mutex_: it runs on the thread that
// drives the engine, which must not wait while gradients are packed under mutex_. The inbox's own
// mutex is taken last and held for moments.
#include "sync/synchronizer.h"

#include <algorithm>
#include <deque>
#include <map>
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
#include "sync/transfer_inbox.h"

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
// At most this many ended transfers are kept for TakeTransfers(), which not every caller calls.
constexpr size_t kEndedMax = 1 << 14;

// Small floats lose too much when they are scaled before they are added up.
bool ScalesWell(DataType type) { return type == DataType::kFloat32 || type == DataType::kFloat64; }

}  // namespace

class Synchronizer::Impl {
 public:
  Impl(Worker& worker, const TensorTable& table, Replica& replica,
       std::unique_ptr<strategy::Strategy> strategy, const SynchronizerOptions& options,
       Buffer gradients)
      : worker_(worker),
        replica_(replica),
        options_(options),
        layout_(table),
        tensors_(table.size()),
        gradients_(std::move(gradients)),
        strategy_(std::move(strategy)),
        packed_(static_cast<size_t>(tensors_), false),
        may_use_(static_cast<size_t>(tensors_), false) {
    times_.forward.resize(static_cast<size_t>(tensors_));
    times_.backward.resize(static_cast<size_t>(tensors_));
    running_times_ = times_;
    helper_ = std::thread([this] { SeeToTransfers(); });
  }

  ~Impl() {
    inbox_.Stop();
    helper_.join();
    // Transfers that are still under way use gradients_ and parameters_, so these must outlive
    // them.
    for (auto& [id, transfer] : transfers_) {
      for (Handle& handle : transfer.handles) handle.Wait().IgnoreError();
    }
  }

  bool in_forked_child() const { return made_here_.InChild(); }

  absl::Status Begin(uint64_t samples, uint64_t all_samples) {
    MutexLock lock(&mutex_);
    ++iteration_;
    factor_ = all_samples > 0 ? static_cast<double>(samples) / static_cast<double>(all_samples) : 0;
    may_use_.assign(may_use_.size(), false);
    last_mark_ns_ = NowNs();
    marked_ = -1;
    Tell(strategy::IterationBegan{
        .iteration = iteration_, .samples = samples, .all_samples = all_samples});
    return failure_;
  }

  absl::Status Need(int tensor) {
    MutexLock lock(&mutex_);
    MarkForward(tensor);
    Tell(strategy::ForwardNeeds{tensor});
    const int64_t begin_ns = NowNs();
    // It is looked up before the wait: a transfer that has been applied is no longer known.
    const int transfer = TransferOf(tensor);
    const absl::Status status =
        WaitUntil([&] { return may_use_[static_cast<size_t>(tensor)]; }, tensor);
    // Most calls find the tensor ready; only a real wait is recorded.
    if (options_.recorder != nullptr && waited_) {
      options_.recorder->RecordUntilNow(SpanKind::kWait, static_cast<int>(iteration_), transfer,
                                        begin_ns);
    }
    last_mark_ns_ = NowNs();
    return status;
  }

  absl::Status BackwardBegins() {
    MutexLock lock(&mutex_);
    MarkForward(-1);
    packed_.assign(packed_.size(), false);
    gradients_of_ = iteration_;
    last_mark_ns_ = NowNs();
    return failure_;
  }

  absl::Status Gradient(int tensor) {
    MutexLock lock(&mutex_);
    const size_t t = static_cast<size_t>(tensor);
    const int64_t begin_ns = NowNs();
    running_times_.backward[t] = static_cast<double>(begin_ns - last_mark_ns_) * 1e-9;
    // A gradient that comes a second time, or too late, is not used: the first was taken, or 0.
    if (packed_[t]) return failure_;
    if (worker_.size() > 1) {
      PackGradient(tensor);
      if (options_.recorder != nullptr) {
        options_.recorder->RecordUntilNow(SpanKind::kPack, static_cast<int>(iteration_), tensor,
                                          begin_ns);
      }
    }
    packed_[t] = true;
    Tell(strategy::GradientReady{tensor});
    // Updates stay pending until a call waits; a transfer that is pending should start now.
    if (HasUrgent()) RunPending();
    last_mark_ns_ = NowNs();
    return failure_;
  }

  absl::Status EndBackward() {
    MutexLock lock(&mutex_);
    for (int tensor = tensors_ - 1; tensor >= 0; --tensor) {
      if (packed_[static_cast<size_t>(tensor)]) continue;
      // This tensor had no part in the backward pass. Other workers may have a gradient for it, so
      // zeros are sent.
      if (worker_.size() > 1) PackGradient(tensor);
      packed_[static_cast<size_t>(tensor)] = true;
      running_times_.backward[static_cast<size_t>(tensor)] = 0;
    }
    // The training thread alone reads times_, without the lock, so it gets a copy here.
    times_ = running_times_;
    Tell(strategy::BackwardEnded{});
    if (HasUrgent()) RunPending();
    return failure_;
  }

  absl::Status Finish() {
    MutexLock lock(&mutex_);
    drained_ = false;
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
    Tell(strategy::NewSchedule{std::move(schedule), iteration_ + 1});
    return failure_;
  }

  int64_t iterations() const {
    MutexLock lock(&mutex_);
    return iteration_ + 1 - options_.first_iteration;
  }
  const IterationTimes& times() const { return times_; }  // by the training thread only
  std::vector<EndedTransfer> TakeTransfers() {
    MutexLock lock(&mutex_);
    return std::exchange(ended_transfers_, {});
  }
  uint64_t bytes_sent() const {
    MutexLock lock(&mutex_);
    return bytes_sent_;
  }

 private:
  struct Running {
    int first = 0;
    int last = 0;
    int64_t begin_ns = 0;
    int64_t iteration = 0;
    uint64_t bytes = 0;
    Content content = Content::kGradients;
    Buffer* memory = nullptr;  // where its data is
    std::vector<Handle> handles;
    size_t calls_left = 0;
    bool done = false;
  };

  int64_t NowNs() const { return MonotonicClock().NowNs(); }

  // The transfer under way that this tensor is part of, or -1 if there is none yet.
  int TransferOf(int tensor) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    for (const auto& [id, running] : transfers_) {
      if (running.first <= tensor && tensor <= running.last) return static_cast<int>(id);
    }
    return -1;
  }

  // Ends the forward time of the tensor that was marked and begins that of `next`. What Need()
  // waits is no part of it: last_mark_ns_ is set after the wait.
  void MarkForward(int next) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (marked_ >= 0) {
      running_times_.forward[static_cast<size_t>(marked_)] =
          static_cast<double>(NowNs() - last_mark_ns_) * 1e-9;
    }
    marked_ = next;
  }

  void PackGradient(int tensor) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    // With its share of all samples multiplied in, a gradient needs a plain sum, which does not
    // have to wait for the others' weights.
    const double factor = factor_ > 0 && ScalesWell(layout_.type(tensor)) ? factor_ : 1;
    std::byte* to = gradients_.as<std::byte>() + layout_.Offset(tensor);
    // No transfer reads this memory now: Need() or Finish() has waited for the tensor's last one.
    replica_.Pack(Content::kGradients, tensor, factor, to);
  }

  // ---- events and commands

  // After a failure the strategy is told nothing more, since every later call returns that error.
  void Tell(const Event& event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!failure_.ok()) return;
    std::vector<Command> commands;
    const double now = static_cast<double>(NowNs()) * 1e-9;
    strategy_->Step(now, event, commands);
    if (options_.told) options_.told(now, event, commands);
    for (Command& command : commands) std::visit([&](auto& c) { Take(c); }, command);
  }

  void Fail(absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (failure_.ok()) failure_ = std::move(status);
    news_.SignalAll();
  }

  void Take(StartTransfer& start) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    // Gradients are packed already. Parameters must be packed by the training thread, after the
    // updates that come before this command, so the transfer goes through the same queue.
    if (start.content == Content::kParameters) {
      pending_.push_back(std::move(start));
      return;
    }
    Start(start, gradients_);
  }
  void Take(ApplyUpdate& apply) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    pending_.push_back(apply);
    news_.SignalAll();
  }
  void Take(Proceed& proceed) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    pending_.push_back(proceed);
    news_.SignalAll();
  }
  void Take(strategy::SetBatch& batch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    pending_.push_back(batch);
  }
  void Take(strategy::Drained& drained) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    pending_.push_back(drained);
    news_.SignalAll();
  }
  void Take(strategy::Fail& fail) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { Fail(fail.status); }
  void Take(strategy::WakeAt& wake) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    inbox_.WakeAt(static_cast<int64_t>(wake.seconds * 1e9));
  }
  void Take(strategy::AskService&) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    Fail(absl::UnimplementedError(
        absl::StrCat("strategy ", strategy_->name(), " asks a service, and this job has none")));
  }

  // Whether the training thread should carry out what is pending now, in the backward pass: a
  // transfer waits among it.
  bool HasUrgent() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return std::any_of(pending_.begin(), pending_.end(), [](const Command& command) {
      return std::holds_alternative<StartTransfer>(command);
    });
  }

  // The training thread carries out here what must not happen while it computes, in the order of
  // the commands.
  void RunPending() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    while (!pending_.empty() && failure_.ok()) {
      Command command = std::move(pending_.front());
      pending_.pop_front();
      if (auto* apply = std::get_if<ApplyUpdate>(&command)) {
        Apply(*apply);
      } else if (auto* proceed = std::get_if<Proceed>(&command)) {
        may_use_[static_cast<size_t>(proceed->tensor)] = true;
      } else if (auto* batch = std::get_if<strategy::SetBatch>(&command)) {
        replica_.SetBatch(batch->samples);
      } else if (std::holds_alternative<strategy::Drained>(command)) {
        drained_ = true;
      } else if (auto* start = std::get_if<StartTransfer>(&command)) {
        absl::StatusOr<Buffer*> parameters = Parameters();
        if (!parameters.ok()) return Fail(parameters.status());
        for (int tensor = start->first; tensor <= start->last; ++tensor) {
          replica_.Pack(Content::kParameters, tensor, 1,
                        (*parameters)->as<std::byte>() + layout_.Offset(tensor));
        }
        Start(*start, **parameters);
      }
    }
  }

  // Memory for parameters is allocated when a strategy first sends any.
  absl::StatusOr<Buffer*> Parameters() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!parameters_) {
      SYNCOPATE_ASSIGN_OR_RETURN(Buffer buffer, worker_.Allocate(layout_.bytes()));
      parameters_ = std::move(buffer);
    }
    return &*parameters_;
  }

  void Apply(const ApplyUpdate& apply) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const std::byte* memory = nullptr;
    const auto found = transfers_.find(apply.transfer);
    if (apply.update != strategy::Update::kStepLocal) {
      if (found == transfers_.end() || !found->second.done) {
        return Fail(absl::InternalError(absl::StrCat("strategy ", strategy_->name(), ": ",
                                                     ToText(Command(apply)),
                                                     ": that transfer has brought nothing")));
      }
      memory = found->second.memory->as<std::byte>();
    }
    // Updating takes long, so the lock is released and transfers go on meanwhile. `found` stays
    // valid: std::map keeps its nodes, and only the training thread, which is here, erases them.
    const int64_t iteration = found == transfers_.end() ? iteration_ : found->second.iteration;
    mutex_.Unlock();
    const int64_t begin_ns = NowNs();
    replica_.Apply(apply, [&](int tensor) {
      return memory == nullptr ? nullptr : memory + layout_.Offset(tensor);
    });
    if (options_.recorder != nullptr) {
      options_.recorder->RecordUntilNow(SpanKind::kUpdate, static_cast<int>(iteration),
                                        static_cast<int>(apply.transfer), begin_ns);
    }
    mutex_.Lock();
    // An update of only a part of the transfer leaves it in place: the rest is still to be read.
    if (found != transfers_.end() && found->second.first >= apply.first &&
        found->second.last <= apply.last) {
      transfers_.erase(apply.transfer);
    }
  }

  // ---- transfers

  // A group is made once for each set of members and kept.
  absl::StatusOr<Group*> GroupOf(const std::vector<int>& members)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (members.empty() || members.size() == static_cast<size_t>(worker_.size())) {
      return &worker_.world();
    }
    const auto found = groups_.find(members);
    if (found != groups_.end()) return &found->second;
    SYNCOPATE_ASSIGN_OR_RETURN(Group group, worker_.NewGroup(members));
    return &groups_.emplace(members, std::move(group)).first->second;
  }

  void Start(const StartTransfer& start, Buffer& memory) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (start.movement != Movement::kAverage) {
      return Fail(absl::UnimplementedError(absl::StrCat(
          "strategy ", strategy_->name(), " wants a parameter server, and this job has none")));
    }
    absl::StatusOr<Group*> group = GroupOf(start.members);
    if (!group.ok()) return Fail(group.status());
    const std::vector<TensorLayout::Range> ranges = layout_.Ranges(start.first, start.last);
    Running& running = transfers_[start.transfer];
    running = {.first = start.first,
               .last = start.last,
               .begin_ns = NowNs(),
               .iteration = gradients_of_,
               .content = start.content,
               .memory = &memory,
               .handles = {},
               .calls_left = ranges.size()};
    for (const TensorLayout::Range& range : ranges) {
      // Gradients were multiplied with their share when they were packed, if all shares are known;
      // then the average is a sum.
      const bool scaled =
          start.content == Content::kGradients && factor_ > 0 && ScalesWell(range.type);
      Call call{.collective = Collective::kAllReduce,
                .data = {memory.as<std::byte>() + range.offset, range.elements, range.type},
                .op = scaled ? ReduceOp::kSum : ReduceOp::kWeightedAverage,
                .weight = start.weight,
                .priority = start.priority};
      // It runs on the thread that drives the engine and must be quick, so it only leaves a note.
      call.ended = [this, id = start.transfer](const absl::Status& status) {
        inbox_.Add({id, NowNs(), status});
      };
      Handle handle = (*group)->Start(call);
      // A call that is done at once is over or was refused; `ended` is not called for a refusal.
      if (handle.Done()) {
        if (absl::Status status = handle.Wait(); !status.ok()) return Fail(std::move(status));
      }
      running.handles.push_back(std::move(handle));
      running.bytes += range.elements * SizeOf(range.type);
    }
    bytes_sent_ += running.bytes;
  }

  void TransferCallEnded(const EndedCall& ended) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto found = transfers_.find(ended.transfer);
    if (found == transfers_.end()) return;
    if (!ended.status.ok()) {
      if (const std::optional<int> suspect = GetSuspect(ended.status)) {
        Tell(strategy::WorkerLost{*suspect, ended.status});
      } else {
        Fail(ended.status);
      }
      return;
    }
    Running& running = found->second;
    // A transfer of tensors of several types is done when the last of its calls is.
    if (--running.calls_left > 0) return;
    running.done = true;
    running.handles.clear();
    // Half of them are dropped at a time, so that a full list costs no move for every transfer.
    if (ended_transfers_.size() >= kEndedMax) {
      ended_transfers_.erase(ended_transfers_.begin(), ended_transfers_.begin() + kEndedMax / 2);
    }
    ended_transfers_.push_back(
        {.iteration = running.iteration,
         .first = running.first,
         .last = running.last,
         .bytes = running.bytes,
         .seconds = static_cast<double>(ended.at_ns - running.begin_ns) * 1e-9});
    if (options_.recorder != nullptr) {
      options_.recorder->Record({.kind = SpanKind::kTransfer,
                                 .iteration = static_cast<int>(running.iteration),
                                 .id = static_cast<int>(ended.transfer),
                                 .begin_ns = running.begin_ns,
                                 .end_ns = ended.at_ns,
                                 .bytes = running.bytes});
    }
    Tell(strategy::TransferDone{ended.transfer});
  }

  // What the synchronizer's own thread runs: it tells the strategy which transfers ended and that a
  // time has come.
  void SeeToTransfers() {
    for (;;) {
      const TransferInbox::News news = inbox_.Take();
      if (news.over) return;
      MutexLock lock(&mutex_);
      for (const EndedCall& ended : news.ended) TransferCallEnded(ended);
      for (size_t i = 0; i < news.times_passed; ++i) Tell(strategy::TimePassed{});
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
      if (!pending_.empty()) continue;
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
  const TensorLayout layout_;
  const int tensors_;
  Buffer gradients_;

  mutable Mutex mutex_;
  CondVar news_;  // for the training thread
  std::unique_ptr<strategy::Strategy> strategy_ ABSL_GUARDED_BY(mutex_);
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  std::optional<Buffer> parameters_ ABSL_GUARDED_BY(mutex_);
  std::map<std::vector<int>, Group> groups_ ABSL_GUARDED_BY(mutex_);
  std::map<int64_t, Running> transfers_ ABSL_GUARDED_BY(mutex_);
  std::deque<Command> pending_ ABSL_GUARDED_BY(mutex_);  // for the training thread, in order
  int64_t iteration_ ABSL_GUARDED_BY(mutex_) = options_.first_iteration - 1;
  int64_t gradients_of_ ABSL_GUARDED_BY(mutex_) = -1;  // the iteration that made what moves
  double factor_ ABSL_GUARDED_BY(mutex_) = 0;          // this batch's share of all; 0: not known
  std::vector<bool> packed_ ABSL_GUARDED_BY(mutex_);
  std::vector<bool> may_use_ ABSL_GUARDED_BY(mutex_);
  bool drained_ ABSL_GUARDED_BY(mutex_) = false;
  bool waited_ ABSL_GUARDED_BY(mutex_) = false;  // the last WaitUntil() really did
  uint64_t bytes_sent_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<EndedTransfer> ended_transfers_ ABSL_GUARDED_BY(mutex_);
  int64_t last_mark_ns_ ABSL_GUARDED_BY(mutex_) = 0;
  int marked_ ABSL_GUARDED_BY(mutex_) = -1;  // the tensor whose forward runs
  IterationTimes running_times_ ABSL_GUARDED_BY(mutex_);
  IterationTimes times_;  // by the training thread only

  TransferInbox inbox_{MonotonicClock()};
  std::thread helper_;
  const ForkMark made_here_;
};

absl::StatusOr<std::unique_ptr<Synchronizer>> Synchronizer::Make(
    Worker& worker, const TensorTable& table, Replica& replica,
    std::unique_ptr<strategy::Strategy> strategy, const SynchronizerOptions& options) {
  SYNCOPATE_RETURN_IF_ERROR(Validate(table));
  SYNCOPATE_ASSIGN_OR_RETURN(Buffer gradients, worker.Allocate(TensorLayout(table).bytes()));
  return std::unique_ptr<Synchronizer>(new Synchronizer(std::make_unique<Impl>(
      worker, table, replica, std::move(strategy), options, std::move(gradients))));
}

Synchronizer::Synchronizer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Synchronizer::~Synchronizer() {
  // A forked child has none of its threads.
  if (impl_ != nullptr && impl_->in_forked_child()) (void)impl_.release();
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
int64_t Synchronizer::iterations() const { return impl_->iterations(); }
const IterationTimes& Synchronizer::times() const { return impl_->times(); }
std::vector<EndedTransfer> Synchronizer::TakeTransfers() { return impl_->TakeTransfers(); }
uint64_t Synchronizer::bytes_sent() const { return impl_->bytes_sent(); }

}  // namespace syncopate::sync
