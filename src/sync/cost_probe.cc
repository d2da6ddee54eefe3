// The budget is spent in three stages: points of one transfer at a time give the start-up time and
// the time of a byte; points of several at once give gamma; a last stage measures the start-up
// while threads compute. Every decision to go on rests on times that all workers have agreed on
// (Rows), so all of them measure the same points in the same order.
#include "sync/cost_probe.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>
#include <memory>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/median.h"
#include "base/status.h"
#include "sync/assemble.h"
#include "sync/synchronizer.h"

namespace syncopate::sync {
namespace {

constexpr uint64_t kGrowth = 4;  // from one size to the next
constexpr int kSizesLeast = 3;   // sizes that are measured whatever the budget
// The parts of the budget: for points that go alone, and, if the job has computing threads, for the
// start-up beside them. The rest is for points with others at once.
constexpr double kAlonePart = 0.5, kBesideComputingPart = 0.2;
constexpr int kSizesAtOnce = 3;  // sizes that gamma is measured with
// A row lasts about this long, so that one late wake-up does not matter.
constexpr double kRowSeconds = 20e-3;
constexpr int kRowLeast = 2, kRowMost = 17;  // the first one does not count
// Traffic shapers let a link that was idle send a burst above its rate. These bytes go first, in
// rows that do not count, to use the burst up.
constexpr uint64_t kLeadBytes = 256 << 10;
constexpr int kLeadRowsMost = 8;
// The rows of smallest transfers beside threads that compute: each lasts a few time slices of a
// busy core.
constexpr int kBusyRowLength = 6, kBusyRowsMost = 9;
// Transfers that take longer than the first are repeated less often, those that take less than the
// second more often, since noise matters more there.
constexpr double kLongSeconds = 50e-3, kShortSeconds = 5e-3;
constexpr int kLongRepetitions = 2, kShortFactor = 3;
constexpr double kNoLimit = std::numeric_limits<double>::infinity();

// A replica whose gradients are zeros and that has no parameters: only the transfers matter.
class NoReplica : public Replica {
 public:
  explicit NoReplica(uint64_t bytes) : bytes_(bytes) {}
  void Pack(strategy::Content, int, double, std::byte* to) override { std::memset(to, 0, bytes_); }
  double Apply(const strategy::ApplyUpdate&, const Brought&) override { return 0; }

 private:
  const uint64_t bytes_;
};

// When transfers ended, by the strategy's clock.
class EndsOfTransfers : public Witness {
 public:
  void Decided(const strategy::Decision& decision) override {
    if (std::holds_alternative<strategy::TransferDone>(decision.event)) {
      ends.push_back(decision.now);
    }
  }
  std::vector<double> ends;
};

// A table of `length` times `at_once` tensors of the same size.
TensorTable RowTable(uint64_t bytes, int at_once, int length) {
  TensorTable table{.model = "row", .tensors = {}};
  for (int i = 0; i < at_once * length; ++i) {
    table.tensors.push_back({.name = absl::StrCat(i),
                             .elements = std::max<uint64_t>(1, bytes / sizeof(float)),
                             .type = DataType::kFloat32,
                             .forward_seconds = 0,
                             .backward_seconds = 0});
  }
  return table;
}

// A schedule in which `at_once` transfers start together, and the next ones when all have ended.
Schedule RowSchedule(int at_once, int length) {
  Schedule schedule{.planner = "row", .transfers = {}};
  for (int i = 0; i < at_once * length; ++i) {
    const int tensor = at_once * length - 1 - i;
    schedule.transfers.push_back({.first = tensor, .last = tensor, .beside = i % at_once});
  }
  return schedule;
}

// All decisions rest on numbers that all workers have agreed on, so all measure the same.
class CostProbe {
 public:
  CostProbe(Worker& worker, const CostProbeOptions& options)
      : worker_(worker), options_(options), begin_ns_(MonotonicClock().NowNs()) {}

  absl::StatusOr<CostMeasurement> Run() {
    SYNCOPATE_RETURN_IF_ERROR(MeasureAlone());
    SYNCOPATE_RETURN_IF_ERROR(MeasureAtOnce());
    if (options_.computing_threads > 0) SYNCOPATE_RETURN_IF_ERROR(MeasureBesideComputing());
    return Result();
  }

 private:
  bool Fits(uint64_t bytes, int at_once) const {
    return bytes * static_cast<uint64_t>(at_once * kRowLeast) <= options_.bytes_max;
  }
  // How long the measurement of a point takes whose transfers take `seconds` each, with the
  // overhead of the last point.
  double Expected(uint64_t bytes, int at_once, double seconds) const {
    return RowsFor(bytes, at_once, seconds, kNoLimit).Seconds(seconds) + overhead_;
  }
  double AtOnceEnd() const {
    return options_.budget_seconds *
           (options_.computing_threads > 0 ? 1 - kBesideComputingPart : 1);
  }

  // The rows of one point: `lead` rows that do not count, then `repetitions` that do.
  struct RowPlan {
    int length = 0, lead = 0, repetitions = 0;
    double Seconds(double each) const { return each * length * (lead + repetitions); }
  };
  // Plans rows that take at most `limit` seconds, unless the least that is needed takes longer.
  RowPlan RowsFor(uint64_t bytes, int at_once, double seconds, double limit) const {
    RowPlan plan;
    plan.length = LengthOf(bytes, at_once, seconds);
    plan.lead = LeadRows(bytes * static_cast<uint64_t>(at_once * plan.length));
    plan.repetitions = RepetitionsFor(seconds);
    const auto shrink = [&](int& count, int least) {
      const double part = std::max(0.0, limit) / std::max(plan.Seconds(seconds), 1e-12);
      if (part < 1) count = std::max(least, static_cast<int>(count * part));
    };
    // Repetitions are worth more than long rows: their median bears one late wake-up.
    shrink(plan.length, kRowLeast);
    shrink(plan.lead, 1);
    shrink(plan.repetitions, 1);
    return plan;
  }

  // How many rows of `row_bytes` go before those that count.
  static int LeadRows(uint64_t row_bytes) {
    return static_cast<int>(
        std::clamp<uint64_t>(kLeadBytes / std::max<uint64_t>(1, row_bytes), 1, kLeadRowsMost));
  }

  int RepetitionsFor(double seconds) const {
    if (seconds < kShortSeconds) return kShortFactor * options_.repetitions;
    return seconds < kLongSeconds ? options_.repetitions
                                  : std::min(options_.repetitions, kLongRepetitions);
  }

  absl::Status MeasureAlone() {
    for (uint64_t bytes = options_.bytes_min; Fits(bytes, 1); bytes *= kGrowth) {
      const double end = kAlonePart * options_.budget_seconds;
      // The least sizes are measured in any case and share what is left of this stage. A larger
      // size is begun only if it is expected to fit.
      const int owed = kSizesLeast - static_cast<int>(points_.size());
      if (owed <= 0 && spent_ + Expected(bytes, 1, kGrowth * points_.back().seconds) > end) break;
      SYNCOPATE_RETURN_IF_ERROR(MeasurePoint(bytes, 1, (end - spent_) / std::max(1, owed)));
    }
    return absl::OkStatus();
  }

  // Goes down from the largest size that the rest of the budget allows, since gamma shows best with
  // large transfers. If none fits, the smallest is measured anyway: without it gamma is unknown.
  absl::Status MeasureAtOnce() {
    const std::vector<cost::CostPoint> alone = points_;
    int sizes = 0;
    for (auto point = alone.rbegin(); point != alone.rend() && sizes < kSizesAtOnce; ++point) {
      double expected = 0;
      for (int k = 2; k <= options_.at_once_max; ++k) {
        expected += Expected(point->bytes, k, k * point->seconds);
      }
      const bool last = point + 1 == alone.rend();
      if (!Fits(point->bytes, options_.at_once_max) && !last) continue;
      if (spent_ + expected > AtOnceEnd() && !(last && sizes == 0)) continue;
      for (int k = 2; k <= options_.at_once_max; ++k) {
        const double limit = (AtOnceEnd() - spent_) / (options_.at_once_max - k + 1);
        SYNCOPATE_RETURN_IF_ERROR(MeasurePoint(point->bytes, k, limit));
      }
      ++sizes;
    }
    return absl::OkStatus();
  }

  // The smallest transfers, while threads of all workers keep the cores busy. Waiting for them is
  // no noise here, so the median counts.
  absl::Status MeasureBesideComputing() {
    std::atomic<bool> enough = false;
    std::vector<std::thread> threads;
    for (int i = 0; i < options_.computing_threads; ++i) {
      threads.emplace_back([&] {
        while (!enough.load(std::memory_order_relaxed)) {
        }
      });
    }
    absl::StatusOr<std::vector<double>> seconds = RowsBesideComputing();
    enough = true;
    for (std::thread& thread : threads) thread.join();
    SYNCOPATE_RETURN_IF_ERROR(seconds.status());
    startup_beside_computing_ = MedianOf(*std::move(seconds));
    return absl::OkStatus();
  }

  // One row, and as many more as the rest of the budget allows.
  absl::StatusOr<std::vector<double>> RowsBesideComputing() {
    const double before = spent_;
    SYNCOPATE_ASSIGN_OR_RETURN(std::vector<double> seconds,
                               Rows(options_.bytes_min, 1, kBusyRowLength, 1));
    const double each = std::max(spent_ - before, 1e-9);
    const double room = (options_.budget_seconds - spent_) / each;
    const int more = static_cast<int>(std::clamp<double>(room, 0, kBusyRowsMost - 1));
    if (more == 0) return seconds;
    SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<double> others,
                               Rows(options_.bytes_min, 1, kBusyRowLength, more));
    seconds.insert(seconds.end(), others.begin(), others.end());
    return seconds;
  }

  // How many transfers a row has if one takes `seconds`; bounded by the memory for its buffers.
  int LengthOf(uint64_t bytes, int at_once, double seconds) const {
    const int wanted = static_cast<int>(std::min(1e3, kRowSeconds / std::max(seconds, 1e-9)));
    const uint64_t each = std::max<uint64_t>(1, bytes * static_cast<uint64_t>(at_once));
    const int room = static_cast<int>(std::min<uint64_t>(kRowMost, options_.bytes_max / each));
    return std::clamp(wanted + 1, kRowLeast, std::max(kRowLeast, room));
  }

  // Measures one point in about `limit` seconds, if that is enough for the least rows.
  absl::Status MeasurePoint(uint64_t bytes, int at_once, double limit) {
    const double begin = spent_;
    // The first calls of a kind run by a quick choice, which is no cost of later ones. Of two short rows
    // the second tells how long a row may be.
    SYNCOPATE_RETURN_IF_ERROR(worker_.world().AwaitPlan(
        {.data =
             Array::Absent(RowTable(bytes, 1, 1).tensors.front().elements, DataType::kFloat32)}));
    SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<double> trial, Rows(bytes, at_once, kRowLeast, 2));
    const RowPlan plan = RowsFor(bytes, at_once, trial[1], limit - (spent_ - begin));
    SYNCOPATE_ASSIGN_OR_RETURN(std::vector<double> seconds,
                               Rows(bytes, at_once, plan.length, plan.lead + plan.repetitions));
    seconds.erase(seconds.begin(), seconds.begin() + plan.lead);
    // Training meets the usual disturbances as well, so the minimum would promise too much.
    const double counted = MedianOf(std::move(seconds));
    overhead_ = std::max(0.0, spent_ - begin - plan.Seconds(counted));
    points_.push_back({bytes, at_once, counted});
    return absl::OkStatus();
  }

  // Plays rows through a synchronizer, since its threads cost time in training as well. Returns for
  // each row the seconds from the end of one transfer to the end of the next, on the slowest
  // worker. The first transfer of a row does not count: the workers begin it at different times.
  // The workers also agree on the time that has been spent, which the next decision rests on.
  absl::StatusOr<std::vector<double>> Rows(uint64_t bytes, int at_once, int length, int rows) {
    const TensorTable table = RowTable(bytes, at_once, length);
    NoReplica replica(table.tensors.front().bytes());
    EndsOfTransfers witness;
    const std::vector<double>& ends = witness.ends;
    strategy::StrategyOptions values;
    values.schedule = std::make_shared<Schedule>(RowSchedule(at_once, length));
    SYNCOPATE_ASSIGN_OR_RETURN(
        const auto synchronizer,
        MakeSynchronizer(worker_, table, replica, "bsp", values, {.witness = &witness}));
    std::vector<double> seconds;
    for (int row = 0; row < rows; ++row) {
      SYNCOPATE_RETURN_IF_ERROR(worker_.world().Barrier());
      witness.ends.clear();
      SYNCOPATE_RETURN_IF_ERROR(PlayRow(*synchronizer, table.size()));
      // The workers end a transfer almost together, and begin the next one then.
      seconds.push_back((ends.back() - ends[static_cast<size_t>(at_once) - 1]) / (length - 1));
    }
    seconds.push_back(SecondsOf(MonotonicClock().NowNs() - begin_ns_));
    SYNCOPATE_RETURN_IF_ERROR(
        worker_.world().AllReduce(Array::Of(seconds.data(), seconds.size()), ReduceOp::kMax));
    spent_ = seconds.back();
    seconds.pop_back();
    return seconds;
  }

  absl::Status PlayRow(Synchronizer& synchronizer, int tensors) {
    SYNCOPATE_RETURN_IF_ERROR(synchronizer.Begin(1, static_cast<uint64_t>(worker_.size())));
    for (int t = 0; t < tensors; ++t) SYNCOPATE_RETURN_IF_ERROR(synchronizer.Need(t));
    SYNCOPATE_RETURN_IF_ERROR(synchronizer.BackwardBegins());
    for (int t = tensors - 1; t >= 0; --t) SYNCOPATE_RETURN_IF_ERROR(synchronizer.Gradient(t));
    SYNCOPATE_RETURN_IF_ERROR(synchronizer.EndBackward());
    return synchronizer.Finish();
  }

  // All workers get rank 0's fit, bit for bit: another processor may round it differently, and the
  // schedules that are planned by it must be the same.
  absl::StatusOr<CostMeasurement> Result() {
    CostMeasurement result;
    SYNCOPATE_ASSIGN_OR_RETURN(result.fit, cost::FitCosts(points_));
    cost::CommunicationCosts& costs = result.fit.costs;
    costs.a = std::max(costs.a, startup_beside_computing_);
    std::vector<double> numbers = {costs.a, costs.b};
    numbers.insert(numbers.end(), costs.gamma.begin(), costs.gamma.end());
    numbers.insert(numbers.end(), result.fit.fitted.begin(), result.fit.fitted.end());
    SYNCOPATE_RETURN_IF_ERROR(
        worker_.world().Broadcast(Array::Of(numbers.data(), numbers.size()), 0));
    result.seconds = spent_;
    result.startup_beside_computing = startup_beside_computing_;
    costs.a = numbers[0];
    costs.b = numbers[1];
    const auto gamma = numbers.begin() + 2;
    std::copy_n(gamma, costs.gamma.size(), costs.gamma.begin());
    std::copy_n(gamma + static_cast<ptrdiff_t>(costs.gamma.size()), result.fit.fitted.size(),
                result.fit.fitted.begin());
    return result;
  }

  Worker& worker_;
  const CostProbeOptions options_;
  const int64_t begin_ns_;
  double spent_ = 0;  // of the budget: wall time since the beginning, agreed on
  // What the last point took besides its rows: trial, planning, the start of the synchronizer.
  double overhead_ = 0;
  double startup_beside_computing_ = 0;
  std::vector<cost::CostPoint> points_;
};

absl::Status Check(const CostProbeOptions& options) {
  if (options.bytes_min < sizeof(float) ||
      options.bytes_max / kRowLeast < kGrowth * kGrowth * options.bytes_min) {
    return absl::InvalidArgumentError(
        "costs: bytes_max must be at least 32 times bytes_min, and that 4");
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

}  // namespace syncopate::sync
