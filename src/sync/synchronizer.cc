// The calls of the training loop, and how its thread waits.
#include "sync/synchronizer.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/status.h"
#include "model/topology.h"
#include "sync/synchronizer_impl.h"
#include "worker/job_services.h"

namespace syncopate::sync {

Synchronizer::Impl::Impl(Worker& worker, const TensorTable& table, Replica& replica,
                         std::unique_ptr<strategy::Strategy> strategy,
                         const SynchronizerOptions& options)
    : worker_(worker),
      replica_(replica),
      options_(options),
      tensors_(table.size()),
      packs_gradients_(options.moves_gradients && (worker.size() > 1 || options.store != nullptr)),
      serves_(std::find(options.servers.begin(), options.servers.end(), worker.rank()) !=
              options.servers.end()),
      values_(worker, table, replica),
      number_(worker::ServicesOf(worker).NextMessenger()),
      agreed_(worker, number_, tensors_),
      control_(worker::MailboxOf(worker)),
      transfers_(worker, values_, inbox_, MonotonicClock(),
                 {.both = options.moves_gradients && options.moves_parameters,
                  .recorder = options.recorder,
                  .store = options.store,
                  .servers = options.servers,
                  .serving_topic = Serving::Topic(number_),
                  .start_later = [this] { StartHeldLater(); },
                  .timeout = options.timeout,
                  .work = &work_}),
      serving_(worker, Serving::Topic(number_), values_.layout(), tensors_, options.store, control_,
               work_, options.timeout,
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

absl::Status Synchronizer::Impl::Start() {
  // The mailbox begins with its first use, for which no lock may be held that its tasks take.
  control_.Do([] {});
  if (options_.moves_gradients) {
    SYNCOPATE_RETURN_IF_ERROR(values_.Allocate(Content::kGradients));
  }
  if (worker_.size() > 1) {
    MutexLock lock(&mutex_);
    SYNCOPATE_RETURN_IF_ERROR(transfers_.MakeGroups());
  }
  // Gradients that go one way and parameters that go the other are those of a server, which this
  // worker may be, or be taken for.
  const bool both = options_.moves_gradients && options_.moves_parameters;
  if (worker_.size() > 1 && (options_.store != nullptr || both)) {
    SYNCOPATE_RETURN_IF_ERROR(serving_.Open());
  }
  if (worker_.size() > 1 && options_.watches_losses) {
    SYNCOPATE_RETURN_IF_ERROR(
        worker::MailboxOf(worker_).Receive(LossTopic(), [this](const Mail& /*last*/) {
          MutexLock lock(&mutex_);
          TellLosses(absl::OkStatus());
          RunPendingStarts();
        }));
    hears_losses_ = true;
  }
  return absl::OkStatus();
}

Synchronizer::Impl::~Impl() {
  serving_.Close();
  if (hears_losses_) {
    worker::MailboxOf(worker_).Receive(LossTopic(), nullptr).IgnoreError();
  }
  control_.Stop();
}

absl::Status Synchronizer::Impl::Begin(uint64_t samples, uint64_t all_samples) {
  FollowNetwork();
  if (options_.agrees_on_batches) {
    agreed_.BeginBatches(std::max<int64_t>(0, Iteration()));
  }
  // Without the lock: it may wait for others.
  absl::StatusOr<std::vector<strategy::NewValue>> values =
      agreed_.Reach(Iteration() + 1, DeadlineNs());
  // After that all that was agreed on before is known: what is wanted is a change of it.
  if (values.ok() && options_.agrees_on_batches && wanted_batch_) {
    agreed_.WantBatch(*wanted_batch_);
  }
  MutexLock lock(&mutex_);
  FailIfNot(values.status());
  if (!failure_.ok()) return failure_;
  for (strategy::NewValue& value : *values) TellValue(std::move(value));
  ++iteration_;
  factor_ = all_samples > 0 ? static_cast<double>(samples) / static_cast<double>(all_samples) : 0;
  may_use_.assign(may_use_.size(), false);
  in_use_.assign(in_use_.size(), false);
  pass_.Begin(NowNs());
  Tell(strategy::IterationBegan{
      .iteration = iteration_, .samples = samples, .all_samples = all_samples});
  return failure_;
}

absl::Status Synchronizer::Impl::Need(int tensor) {
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

absl::Status Synchronizer::Impl::BackwardBegins() {
  MutexLock lock(&mutex_);
  pass_.Forward(-1, NowNs());
  ready_.assign(ready_.size(), false);
  gradients_of_ = iteration_;
  gradients_factor_ = factor_;
  pass_.Resume(NowNs());
  return failure_;
}

absl::Status Synchronizer::Impl::Gradient(int tensor) {
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

absl::Status Synchronizer::Impl::EndBackward() {
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
  // What counts from this iteration on came too late for its batch, on all workers.
  if (const auto batches = agreed_.TakeBatches(iteration_)) {
    FailIfNot(replica_.SetBatches(*batches));
  }
  return failure_;
}

absl::Status Synchronizer::Impl::Finish() {
  MutexLock lock(&mutex_);
  drained_ = false;
  in_use_.assign(in_use_.size(), false);
  Tell(strategy::Drain{});
  const int64_t begin_ns = NowNs();
  const absl::Status status = WaitUntil([&] { return drained_; }, -1);
  if (options_.recorder != nullptr && waited_) {
    options_.recorder->RecordUntilNow(SpanKind::kWait, static_cast<int>(iteration_), -1, begin_ns);
  }
  return status;
}

absl::StatusOr<std::string> Synchronizer::Impl::StrategyState() const {
  MutexLock lock(&mutex_);
  if (!failure_.ok()) return failure_;
  std::string state = strategy_->State();
  if (state.size() <= limits::kStrategyStateBytesMax) return state;
  return absl::ResourceExhaustedError(
      absl::StrCat("strategy ", strategy_->name(), " has a state of ", state.size(),
                   " bytes; the limit is ", limits::kStrategyStateBytesMax));
}

absl::StatusOr<std::string> Synchronizer::Impl::ServiceState() {
  return options_.own_service.empty() ? std::string()
                                      : ServiceStateOf(worker_, options_.own_service);
}

absl::Status Synchronizer::Impl::SetSchedule(std::shared_ptr<const Schedule> schedule) {
  SYNCOPATE_RETURN_IF_ERROR(Validate(*schedule, tensors_));
  MutexLock lock(&mutex_);
  TellValue({std::move(schedule), iteration_ + 1});
  return failure_;
}

absl::Status Synchronizer::Impl::Propose(std::shared_ptr<const Schedule> schedule) {
  SYNCOPATE_RETURN_IF_ERROR(Validate(*schedule, tensors_));
  agreed_.Propose(std::move(schedule));
  return absl::OkStatus();
}

std::shared_ptr<const Schedule> Synchronizer::Impl::schedule() const {
  MutexLock lock(&mutex_);
  std::shared_ptr<const Schedule> last;
  for (const auto& [from, schedule] : schedules_) {
    if (from <= iteration_) last = schedule;
  }
  return last;
}

void Synchronizer::Impl::FollowNetwork() {
  const std::optional<uint64_t> newest = worker::WatchedNetworkVersion(worker_);
  if (!newest) return;
  agreed_.BeginTopologies(std::max<int64_t>(0, Iteration()));
  if (worker_.rank() != 0 || std::exchange(network_version_, newest) == newest) return;
  absl::StatusOr<Topology> topology = ParseTopology(worker_.Network().topology_json);
  if (topology.ok()) agreed_.Propose(std::make_shared<const Topology>(*std::move(topology)));
}

int64_t Synchronizer::Impl::iterations() const {
  MutexLock lock(&mutex_);
  return iteration_ + 1 - options_.first_iteration;
}

std::vector<EndedTransfer> Synchronizer::Impl::TakeTransfers() {
  MutexLock lock(&mutex_);
  return transfers_.TakeEnded();
}

uint64_t Synchronizer::Impl::bytes_sent() const {
  MutexLock lock(&mutex_);
  return transfers_.bytes_sent();
}

void Synchronizer::Impl::PackGradient(int tensor, double share) {
  const int64_t begin_ns = NowNs();
  values_.PackGradient(tensor, share);
  if (options_.recorder != nullptr) {
    // iteration_ changes on this thread only, in Begin().
    options_.recorder->RecordUntilNow(SpanKind::kPack, static_cast<int>(Iteration()), tensor,
                                      begin_ns);
  }
}

bool Synchronizer::Impl::AwaitNews(int64_t deadline_ns) {
  mutex_.Unlock();
  const bool any = inbox_.Wait(deadline_ns);
  mutex_.Lock();
  if (any) TellNews();
  return any;
}

void Synchronizer::Impl::FailLate(absl::string_view what) {
  Fail(absl::DeadlineExceededError(absl::StrCat(
      "strategy ", strategy_->name(), ": worker ", worker_.rank(), " waited ",
      absl::FormatDuration(options_.timeout), " in iteration ", iteration_, " for ", what)));
}

absl::Status Synchronizer::Impl::WaitUntil(const std::function<bool()>& condition, int tensor) {
  const int64_t deadline_ns = DeadlineNs();
  waited_ = false;
  for (;;) {
    RunPending();
    if (!failure_.ok()) return failure_;
    if (condition()) return absl::OkStatus();
    waited_ = true;
    if (AwaitNews(deadline_ns)) continue;
    FailLate(tensor < 0 ? "the end of what is under way" : absl::StrCat("tensor ", tensor));
    return failure_;
  }
}

absl::StatusOr<std::unique_ptr<Synchronizer>> Synchronizer::Make(
    Worker& worker, const TensorTable& table, Replica& replica,
    std::unique_ptr<strategy::Strategy> strategy, const SynchronizerOptions& options) {
  SYNCOPATE_RETURN_IF_ERROR(Validate(table));
  if (!options.resumed.strategy.empty()) {
    SYNCOPATE_RETURN_IF_ERROR(
        At(absl::StrCat("the state of strategy ", strategy->name()),
           strategy->Resume(options.resumed.strategy, options.resumed.ranks)));
  }
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
absl::StatusOr<std::string> Synchronizer::StrategyState() const { return impl_->StrategyState(); }
absl::StatusOr<std::string> Synchronizer::ServiceState() { return impl_->ServiceState(); }
absl::Status Synchronizer::SetSchedule(std::shared_ptr<const Schedule> schedule) {
  return impl_->SetSchedule(std::move(schedule));
}
void Synchronizer::AgreeOnSchedules() { impl_->AgreeOnSchedules(); }
absl::Status Synchronizer::Propose(std::shared_ptr<const Schedule> schedule) {
  return impl_->Propose(std::move(schedule));
}
std::shared_ptr<const Schedule> Synchronizer::schedule() const { return impl_->schedule(); }
void Synchronizer::Deliver(strategy::Event event) { impl_->Deliver(std::move(event)); }
void Synchronizer::End(absl::Status why) { impl_->End(std::move(why)); }
int64_t Synchronizer::iterations() const { return impl_->iterations(); }
const IterationTimes& Synchronizer::times() const { return impl_->times(); }
std::vector<EndedTransfer> Synchronizer::TakeTransfers() { return impl_->TakeTransfers(); }
uint64_t Synchronizer::bytes_sent() const { return impl_->bytes_sent(); }

}  // namespace syncopate::sync
