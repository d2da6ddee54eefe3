#include "sync/replay.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/sleep.h"
#include "base/status.h"
#include "sync/assemble.h"

namespace syncopate::sync {
namespace {

// Shorter times are not slept; the next sleep makes up for them.
constexpr int64_t kSleepNsLeast = 50'000;
// A call of the synchronizer that took longer has waited, and was not just interrupted.
constexpr int64_t kHeldNs = 50'000;

int64_t NowNs() { return MonotonicClock().NowNs(); }

}  // namespace

// Gradients that are the same in every iteration, of which a few are checked when their mean comes
// back.
class PlayedReplica : public Replica {
 public:
  PlayedReplica(const TensorTable& table, int rank, int size) : table_(table), rank_(rank) {
    for (int i = 0; i < size; ++i) mean_ += ValueOf(i) / size;
    uint64_t most = 0;
    for (const TensorInfo& tensor : table.tensors) {
      if (tensor.type == DataType::kFloat32) most = std::max(most, tensor.elements);
    }
    // Only float32 tensors have values; other types get zeros.
    values_.assign(most, static_cast<float>(ValueOf(rank)));
  }

  void Pack(strategy::Content, int tensor, double factor, std::byte* to) override {
    const TensorInfo& info = table_.tensors[static_cast<size_t>(tensor)];
    if (info.type != DataType::kFloat32) {
      std::memset(to, 0, info.bytes());
      return;
    }
    if (factor != factor_) {
      factor_ = factor;
      std::fill(values_.begin(), values_.end(), static_cast<float>(ValueOf(rank_) * factor));
    }
    std::memcpy(to, values_.data(), info.bytes());
  }

  double Apply(const strategy::ApplyUpdate& update, const Brought& brought) override {
    if (update.update != strategy::Update::kStepAveraged || !status_.ok()) return 0;
    for (const int tensor : {update.first, update.last}) {
      const TensorInfo& info = table_.tensors[static_cast<size_t>(tensor)];
      if (info.type != DataType::kFloat32) continue;
      float last = 0;
      std::memcpy(&last, brought.Result(tensor) + info.bytes() - sizeof(last), sizeof(last));
      if (std::abs(last - mean_) <= 1e-3 * mean_) continue;
      status_ = absl::DataLossError(
          absl::StrCat("the mean of ", info.name, " came as ", last, " instead of ", mean_));
    }
    return 0;
  }

  absl::Status SetBatch(uint64_t samples) override {
    batch_ = samples;
    batch_was_set_ = true;
    return absl::OkStatus();
  }
  absl::Status SetProgress(const strategy::SetProgress& progress) override {
    stops_ |= progress.stop;
    return absl::OkStatus();
  }

  const absl::Status& status() const { return status_; }
  uint64_t batch() const { return batch_; }
  bool batch_was_set() const { return batch_was_set_; }
  bool stops() const { return stops_; }

 private:
  static double ValueOf(int rank) { return 1 + rank; }

  const TensorTable table_;
  const int rank_;
  double mean_ = 0;
  double factor_ = 1;
  std::vector<float> values_;
  absl::Status status_;
  uint64_t batch_ = 1;
  bool batch_was_set_ = false;
  bool stops_ = false;
};

void PlayedTime::Work(double seconds) {
  const double ns = seconds * 1e9 + rest_ns_;
  at_ns_ += static_cast<int64_t>(ns);
  rest_ns_ = ns - std::floor(ns);
  if (at_ns_ - NowNs() >= kSleepNsLeast) SleepUntil(at_ns_);
}

void PlayedTime::Held(int64_t now_ns) { at_ns_ = std::max(at_ns_, now_ns); }

class Replay::Impl {
 public:
  Impl(Worker& worker, const TensorTable& table, const ReplayOptions& options)
      : size_(worker.size()),
        table_(table),
        options_(options),
        replica_(table, worker.rank(), worker.size()) {
    for (const TensorInfo& tensor : table.tensors) {
      compute_seconds_ += tensor.forward_seconds + tensor.backward_seconds;
    }
  }

  absl::Status Start(Worker& worker, const Schedule& schedule) {
    SYNCOPATE_RETURN_IF_ERROR(Validate(schedule, table_.size()));
    strategy::StrategyOptions values;
    values.schedule = std::make_shared<Schedule>(schedule);
    SYNCOPATE_ASSIGN_OR_RETURN(
        synchronizer_,
        MakeSynchronizer(worker, table_, replica_, options_.strategy, values,
                         {.timeout = options_.timeout, .recorder = options_.recorder}));
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<double>> Run(int iterations) {
    std::vector<double> seconds;
    int64_t begin_ns = NowNs();
    PlayedTime time(begin_ns);
    for (int i = 0; i < iterations && !replica_.stops(); ++i) {
      SYNCOPATE_RETURN_IF_ERROR(Play(time));
      if (!options_.overlap_forward || i + 1 == iterations || replica_.stops()) {
        SYNCOPATE_RETURN_IF_ERROR(synchronizer_->Finish());
        time.Held(NowNs());
      }
      SYNCOPATE_RETURN_IF_ERROR(replica_.status());
      const int64_t end_ns = NowNs();
      seconds.push_back(static_cast<double>(end_ns - begin_ns) * 1e-9);
      begin_ns = end_ns;
    }
    return seconds;
  }

  Synchronizer& synchronizer() { return *synchronizer_; }

 private:
  // One iteration, without waiting for its transfers.
  absl::Status Play(PlayedTime& time) {
    // Batches that a strategy has set are known to nobody else.
    const uint64_t samples = replica_.batch();
    const double work = static_cast<double>(samples);
    SYNCOPATE_RETURN_IF_ERROR(
        synchronizer_->Begin(samples, replica_.batch_was_set() ? 0 : static_cast<uint64_t>(size_)));
    const int iteration = static_cast<int>(synchronizer_->iterations() - 1);
    int64_t phase_ns = NowNs();
    for (int t = 0; t < table_.size(); ++t) {
      const int64_t before_ns = NowNs();
      SYNCOPATE_RETURN_IF_ERROR(synchronizer_->Need(t));
      const int64_t after_ns = NowNs();
      if (after_ns - before_ns > kHeldNs) time.Held(after_ns);
      time.Work(work * table_.tensors[static_cast<size_t>(t)].forward_seconds);
    }
    Record(SpanKind::kForward, iteration, phase_ns);
    SYNCOPATE_RETURN_IF_ERROR(synchronizer_->BackwardBegins());
    phase_ns = NowNs();
    for (int t = table_.size() - 1; t >= 0; --t) {
      time.Work(work * table_.tensors[static_cast<size_t>(t)].backward_seconds);
      SYNCOPATE_RETURN_IF_ERROR(synchronizer_->Gradient(t));
    }
    const double computed = work * compute_seconds_;
    time.Work(options_.pace.Seconds(computed, work) - computed);
    Record(SpanKind::kBackward, iteration, phase_ns);
    return synchronizer_->EndBackward();
  }

  void Record(SpanKind kind, int iteration, int64_t begin_ns) {
    if (options_.recorder != nullptr) {
      options_.recorder->RecordUntilNow(kind, iteration, -1, begin_ns);
    }
  }

  const int size_;
  const TensorTable table_;
  const ReplayOptions options_;
  PlayedReplica replica_;
  double compute_seconds_ = 0;                  // of a sample, which is what batches are of
  std::unique_ptr<Synchronizer> synchronizer_;  // uses the replica
};

Replay::Replay(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Replay::~Replay() = default;

absl::StatusOr<std::unique_ptr<Replay>> Replay::Make(Worker& worker, const TensorTable& table,
                                                     const Schedule& schedule,
                                                     const ReplayOptions& options) {
  SYNCOPATE_RETURN_IF_ERROR(Validate(table));
  auto impl = std::make_unique<Impl>(worker, table, options);
  SYNCOPATE_RETURN_IF_ERROR(impl->Start(worker, schedule));
  return std::unique_ptr<Replay>(new Replay(std::move(impl)));
}

absl::Status Replay::SetSchedule(const Schedule& schedule) {
  return impl_->synchronizer().SetSchedule(std::make_shared<Schedule>(schedule));
}

absl::StatusOr<std::vector<double>> Replay::Run(int iterations) { return impl_->Run(iterations); }

int64_t Replay::iteration() const { return impl_->synchronizer().iterations() - 1; }

}  // namespace syncopate::sync
