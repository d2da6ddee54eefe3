#include "driver/cost_probe.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"

namespace syncopate::driver {
namespace {

constexpr uint64_t kGrowth = 4;
constexpr int kSizesLeast = 3;
// The part of the budget for points that go alone; the rest is for those with others at once.
constexpr double kAlonePart = 0.45;
constexpr int kSizesAtOnce = 3;  // that gamma is measured with
// A run is about this long, so that starting together and reading the clock do not matter.
constexpr double kRunSeconds = 4e-3;
constexpr int kRunMax = 8;

double Seconds(int64_t ns) { return static_cast<double>(ns) * 1e-9; }

// Waits as a driver does: not by driving the operations itself, but until it is told of their ends,
// which costs a schedule a change of threads, too.
class Ends {
 public:
  explicit Ends(int count) : left_(count) {}
  void Count() {
    MutexLock lock(&mutex_);
    if (--left_ == 0) done_.Signal();
  }
  // Every operation ends within its timeout.
  void Wait() {
    MutexLock lock(&mutex_);
    while (left_ > 0) done_.Wait(&mutex_);
  }

 private:
  Mutex mutex_;
  CondVar done_;
  int left_ ABSL_GUARDED_BY(mutex_);
};

// All decisions rest on numbers that all workers have agreed on, so all measure the same.
class CostProbe {
 public:
  CostProbe(Worker& worker, const CostProbeOptions& options)
      : world_(worker.world()), options_(options), begin_ns_(MonotonicClock().NowNs()) {
    absl::StatusOr<Buffer> buffer = worker.Allocate(options.bytes_max);
    if (buffer.ok()) {
      buffer_ = *std::move(buffer);
      data_ = buffer_->as<std::byte>();
    } else {  // no room left where it would be fastest
      memory_.resize(options.bytes_max);
      data_ = memory_.data();
    }
    std::memset(data_, 0, options.bytes_max);
  }

  absl::StatusOr<CostMeasurement> Run() {
    SYNCOPATE_RETURN_IF_ERROR(MeasureAlone());
    SYNCOPATE_RETURN_IF_ERROR(MeasureAtOnce());
    return Result();
  }

 private:
  absl::Status MeasureAlone() {
    for (uint64_t bytes = options_.bytes_min; bytes <= options_.bytes_max; bytes *= kGrowth) {
      const double last = points_.empty() ? 0 : points_.back().seconds;
      const double expected = last * kGrowth * (options_.repetitions + 1);
      const bool least = points_.size() < kSizesLeast;
      if (!least && spent_ + expected > kAlonePart * options_.budget_seconds) break;
      SYNCOPATE_RETURN_IF_ERROR(MeasurePoint(bytes, 1));
    }
    return absl::OkStatus();
  }

  // From the largest size that the rest of the budget allows down: there gamma shows best.
  absl::Status MeasureAtOnce() {
    const std::vector<CostPoint> alone = points_;
    int sizes = 0;
    for (auto point = alone.rbegin(); point != alone.rend() && sizes < kSizesAtOnce; ++point) {
      double expected = 0;
      for (int k = 2; k <= options_.at_once_max; ++k) {
        expected += k * point->seconds * (options_.repetitions + 1);
      }
      const bool last = point + 1 == alone.rend();
      const bool fits =
          point->bytes * static_cast<uint64_t>(options_.at_once_max) <= options_.bytes_max;
      if (!fits || (!last && spent_ + expected > options_.budget_seconds)) continue;
      for (int k = 2; k <= options_.at_once_max; ++k) {
        SYNCOPATE_RETURN_IF_ERROR(MeasurePoint(point->bytes, k));
      }
      ++sizes;
    }
    return absl::OkStatus();
  }

  absl::Status MeasurePoint(uint64_t bytes, int at_once) {
    // The first time programs are made, which is no cost of the others and may take long.
    SYNCOPATE_RETURN_IF_ERROR(RunOf(bytes, 1, 1, /*counted=*/false).status());
    SYNCOPATE_ASSIGN_OR_RETURN(const double first, RunOf(bytes, at_once, 1));
    const int length =
        std::clamp(static_cast<int>(kRunSeconds / std::max(first, 1e-9)), 1, kRunMax);
    std::vector<double> seconds;
    for (int i = 0; i < options_.repetitions; ++i) {
      SYNCOPATE_ASSIGN_OR_RETURN(const double one, RunOf(bytes, at_once, length));
      seconds.push_back(one);
    }
    const auto middle = seconds.begin() + static_cast<ptrdiff_t>(seconds.size() / 2);
    std::nth_element(seconds.begin(), middle, seconds.end());
    points_.push_back({bytes, at_once, *middle});
    return absl::OkStatus();
  }

  // Seconds a member of a run, on the slowest worker.
  absl::StatusOr<double> RunOf(uint64_t bytes, int at_once, int length, bool counted = true) {
    SYNCOPATE_RETURN_IF_ERROR(world_.Barrier());
    const int64_t begin_ns = MonotonicClock().NowNs();
    const uint64_t elements = std::max<uint64_t>(1, bytes / sizeof(float));
    for (int i = 0; i < length; ++i) {
      std::vector<Handle> handles;
      Ends ends(at_once);
      for (int k = 0; k < at_once; ++k) {
        float* data = reinterpret_cast<float*>(data_) + static_cast<uint64_t>(k) * elements;
        handles.push_back(world_.Start({.collective = Collective::kAllReduce,
                                        .data = Array::Of(data, elements),
                                        .op = ReduceOp::kSum,
                                        .ended = [&](const absl::Status&) { ends.Count(); }}));
        // Over already, or it could not even start, which nobody else tells.
        if (!handles.back().Done()) continue;
        if (absl::Status status = handles.back().Wait(); !status.ok()) {
          for (Handle& handle : handles) handle.Wait().IgnoreError();
          return status;
        }
      }
      ends.Wait();
      for (Handle& handle : handles) SYNCOPATE_RETURN_IF_ERROR(handle.Wait());
    }
    const int64_t end_ns = MonotonicClock().NowNs();
    double slowest = Seconds(end_ns - begin_ns);
    SYNCOPATE_RETURN_IF_ERROR(world_.AllReduce(Array::Of(&slowest, 1), ReduceOp::kMax));
    if (counted) spent_ += slowest;
    return slowest / length;
  }

  // Rank 0's numbers, bit for bit: another processor may round a fit differently.
  absl::StatusOr<CostMeasurement> Result() {
    CostMeasurement result;
    SYNCOPATE_ASSIGN_OR_RETURN(result.fit, FitCosts(points_));
    CommunicationCosts& costs = result.fit.costs;
    const double elapsed = Seconds(MonotonicClock().NowNs() - begin_ns_);
    std::vector<double> numbers = {elapsed, costs.a, costs.b};
    numbers.insert(numbers.end(), costs.gamma.begin(), costs.gamma.end());
    numbers.insert(numbers.end(), result.fit.fitted.begin(), result.fit.fitted.end());
    SYNCOPATE_RETURN_IF_ERROR(world_.Broadcast(Array::Of(numbers.data(), numbers.size()), 0));
    result.seconds = numbers[0];
    costs.a = numbers[1];
    costs.b = numbers[2];
    const auto gamma = numbers.begin() + 3;
    std::copy_n(gamma, costs.gamma.size(), costs.gamma.begin());
    std::copy_n(gamma + static_cast<ptrdiff_t>(costs.gamma.size()), result.fit.fitted.size(),
                result.fit.fitted.begin());
    return result;
  }

  Group& world_;
  const CostProbeOptions options_;
  const int64_t begin_ns_;
  std::optional<Buffer> buffer_;
  std::vector<std::byte> memory_;
  std::byte* data_ = nullptr;
  double spent_ = 0;  // of the budget
  std::vector<CostPoint> points_;
};

absl::Status Check(const CostProbeOptions& options) {
  if (options.bytes_min < sizeof(float) || options.bytes_max < 16 * options.bytes_min) {
    return absl::InvalidArgumentError(
        "costs: bytes_max must be at least 16 times bytes_min, and that 4");
  }
  if (options.at_once_max < 1 || options.at_once_max > 16 || options.repetitions < 1) {
    return absl::InvalidArgumentError("costs: at_once_max must be 1 to 16, repetitions at least 1");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CostMeasurement> MeasureCosts(Worker& worker, const CostProbeOptions& options) {
  SYNCOPATE_RETURN_IF_ERROR(Check(options));
  if (worker.size() == 1) {
    CostMeasurement alone;
    alone.fit.costs.source = "one worker";
    return alone;
  }
  return CostProbe(worker, options).Run();
}

}  // namespace syncopate::driver
