#include "observe/breakdown.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/parse.h"
#include "base/status.h"
#include "observe/intervals.h"
#include "observe/real_begins.h"

namespace syncopate::observe {
namespace {

constexpr double kNs = 1e-9;

// A transfer as its worker saw it, on rank 0's clock.
struct Flight {
  int id = 0;
  int64_t begin = 0;
  int64_t end = 0;
  int64_t moving = 0;  // when bytes began to move, in [begin, end]
  int late = 0;        // the rank that started it last
};

// Finds the parts of a wait in which the worker waited for late ranks, by rank. Flights are sorted
// by begin, with the largest end so far beside each, so a wait looks only at those that overlap it.
class WaitExplainer {
 public:
  WaitExplainer(const WorkerTrace& trace, const RealBegins& begins) {
    for (const Span& span : trace.spans) {
      if (span.kind != SpanKind::kTransfer) continue;
      Flight flight;
      flight.id = span.id;
      flight.begin = span.begin_ns + trace.clock_offset_ns;
      flight.end = span.end_ns + trace.clock_offset_ns;
      const RealBegin& real = begins.at({span.iteration, span.id});
      // The rank that starts last waits for nobody. Clocks are compared with an error, so the real
      // begin may seem to lie outside of the flight.
      flight.moving =
          real.rank == trace.rank ? flight.begin : std::clamp(real.at_ns, flight.begin, flight.end);
      flight.late = real.rank;
      flights_.push_back(flight);
    }
    std::sort(flights_.begin(), flights_.end(),
              [](const Flight& a, const Flight& b) { return a.begin < b.begin; });
    int64_t end = INT64_MIN;
    for (const Flight& flight : flights_) ends_.push_back(end = std::max(end, flight.end));
  }

  // `wait` is on rank 0's clock; `id` is that of the transfer that the span names.
  void Explain(const Interval& wait, int id, std::map<int, int64_t>* late) const {
    std::vector<const Flight*> under_way;
    const Flight* sought = nullptr;
    auto after = std::lower_bound(
        flights_.begin(), flights_.end(), wait.end,
        [](const Flight& flight, int64_t moment) { return flight.begin < moment; });
    for (size_t i = static_cast<size_t>(after - flights_.begin()); i-- > 0;) {
      if (ends_[i] <= wait.begin) break;  // all earlier flights have ended, too
      if (flights_[i].end <= wait.begin) continue;
      under_way.push_back(&flights_[i]);
      if (flights_[i].id == id && sought == nullptr) sought = &flights_[i];
    }
    if (sought == nullptr) return Attribute(wait, under_way, late);
    // Before the transfer that is waited for was started here, others were in its way.
    const int64_t border = std::clamp(sought->begin, wait.begin, wait.end);
    Attribute({wait.begin, border}, under_way, late);
    Attribute({border, wait.end}, {sought}, late);
  }

 private:
  static void Attribute(const Interval& wait, std::vector<const Flight*> flights,
                        std::map<int, int64_t>* late) {
    if (wait.end <= wait.begin) return;
    Intervals started, moving;
    for (const Flight* flight : flights) {
      started.push_back({flight->begin, flight->end});
      moving.push_back({flight->moving, flight->end});
    }
    Intervals blocked =
        Difference(Intersection(Merged(started), {wait}), Merged(std::move(moving)));
    // A moment in which several transfers are blocked is charged once, to the rank whose transfer
    // moved first: with that one in time the wait would have ended soonest.
    std::sort(flights.begin(), flights.end(),
              [](const Flight* a, const Flight* b) { return a->moving < b->moving; });
    for (const Flight* flight : flights) {
      if (blocked.empty()) break;
      const Intervals mine = Intersection(blocked, Merged({{flight->begin, flight->moving}}));
      const int64_t length = Length(mine);
      if (length == 0) continue;
      (*late)[flight->late] += length;
      blocked = Difference(blocked, mine);
    }
  }

  std::vector<Flight> flights_;  // by begin
  std::vector<int64_t> ends_;    // the largest end of flights_[0..i]
};

// The spans of one iteration on a training thread, on the worker's own clock: only waits for others
// are compared on rank 0's.
struct ThreadIteration {
  int64_t begin = INT64_MAX;
  int64_t end = INT64_MIN;
  Intervals compute, pack, wait;
  std::vector<Span> waits;
  std::set<SpanKind> phases;  // of forward, backward, update
};

// The iterations of one worker, and the time that belongs to none of them.
struct ThreadTimes {
  std::map<int, ThreadIteration> iterations;
  Intervals outside;  // evaluation, checkpoints, measuring
  std::map<int, uint64_t> bytes;
};

// Transfers run beside the training thread and take none of its time; only their bytes count here.
ThreadTimes SortOut(const WorkerTrace& trace) {
  ThreadTimes times;
  for (const Span& span : trace.spans) {
    const Interval interval{span.begin_ns, span.end_ns};
    if (span.kind == SpanKind::kTransfer) {
      times.bytes[span.iteration] += span.bytes;
      continue;
    }
    if (IsOutsideOfIterations(span.kind)) {
      times.outside.push_back(interval);
      continue;
    }
    ThreadIteration& iteration = times.iterations[span.iteration];
    iteration.begin = std::min(iteration.begin, span.begin_ns);
    iteration.end = std::max(iteration.end, span.end_ns);
    if (span.kind == SpanKind::kPack) {
      iteration.pack.push_back(interval);
    } else if (span.kind == SpanKind::kWait) {
      iteration.wait.push_back(interval);
      iteration.waits.push_back(span);
    } else {
      iteration.compute.push_back(interval);
      if (span.kind != SpanKind::kLoad) iteration.phases.insert(span.kind);
    }
  }
  times.outside = Merged(std::move(times.outside));
  // A run that was cut off leaves a last iteration without its end: it has fewer phases than the
  // one before it.
  if (times.iterations.size() > 1) {
    const auto last = std::prev(times.iterations.end());
    if (last->second.phases.size() < std::prev(last)->second.phases.size()) {
      times.iterations.erase(last);
    }
  }
  return times;
}

// An iteration lasts until the next one begins, so that time between the two belongs to it.
IterationCost CostOf(const WorkerTrace& trace, const ThreadTimes& times, int number,
                     const WaitExplainer& explainer) {
  const ThreadIteration& iteration = times.iterations.at(number);
  const auto next = times.iterations.find(number + 1);
  // An iteration that spans of the next one overlap has no negative length.
  const int64_t end = next == times.iterations.end()
                          ? iteration.end
                          : std::max(next->second.begin, iteration.begin);
  IterationCost cost;
  cost.iteration = number;
  cost.rank = trace.rank;
  const Intervals whole = Difference(Merged({{iteration.begin, end}}), times.outside);
  // Each moment of the whole goes to the first part that claims it, so the parts add up. The order
  // matters: waits and packing happen inside of a forward or backward span.
  Intervals left = whole;
  const auto take = [&left](Intervals claimed) {
    Intervals taken = Intersection(left, Merged(std::move(claimed)));
    left = Difference(left, taken);
    return taken;
  };
  const auto seconds_of = [](const Intervals& set) {
    return static_cast<double>(Length(set)) * kNs;
  };
  cost.seconds = seconds_of(whole);
  const Intervals wait = take(iteration.wait);
  cost.exposed = seconds_of(wait);
  cost.pack = seconds_of(take(iteration.pack));
  cost.compute = seconds_of(take(iteration.compute));
  cost.other = seconds_of(left);
  std::map<int, int64_t> late;
  for (const Span& span : iteration.waits) {
    for (const Interval& part : Intersection(wait, Merged({{span.begin_ns, span.end_ns}}))) {
      explainer.Explain({part.begin + trace.clock_offset_ns, part.end + trace.clock_offset_ns},
                        span.id, &late);
    }
  }
  for (const auto& [rank, ns] : late) {
    cost.late.emplace_back(rank, static_cast<double>(ns) * kNs);
    cost.waiting += cost.late.back().second;
  }
  cost.waiting = std::min(cost.waiting, cost.exposed);
  const auto bytes = times.bytes.find(number);
  if (bytes != times.bytes.end()) cost.bytes = bytes->second;
  return cost;
}

// Where one worker's spans are missing, nobody can say who waited for whom.
bool IsDropped(const std::vector<WorkerTrace>& traces, int iteration) {
  return std::any_of(traces.begin(), traces.end(), [&](const WorkerTrace& trace) {
    return trace.dropped > 0 && trace.dropped_first <= iteration && iteration <= trace.dropped_last;
  });
}

template <typename Field>
Spread SpreadOfField(const std::vector<IterationCost>& costs, Field field) {
  std::vector<double> values;
  values.reserve(costs.size());
  for (const IterationCost& cost : costs) values.push_back(cost.*field);
  return SpreadOf(std::move(values));
}

template <typename Total>
void FillSpreads(const std::vector<IterationCost>& costs, Total& total) {
  total.seconds = SpreadOfField(costs, &IterationCost::seconds);
  total.compute = SpreadOfField(costs, &IterationCost::compute);
  total.pack = SpreadOfField(costs, &IterationCost::pack);
  total.exposed = SpreadOfField(costs, &IterationCost::exposed);
  total.waiting = SpreadOfField(costs, &IterationCost::waiting);
  total.other = SpreadOfField(costs, &IterationCost::other);
}

// Several workers wait for the same late rank at once, so an iteration counts with the longest of
// their waits, not with the sum.
std::vector<Lateness> RankLateness(const Breakdown& breakdown, double fraction_min) {
  std::map<int, std::map<int, double>> longest;  // by rank and iteration
  std::set<int> iterations;
  for (const IterationCost& cost : breakdown.iterations) {
    iterations.insert(cost.iteration);
    for (const auto& [rank, seconds] : cost.late) {
      double& most = longest[rank][cost.iteration];
      most = std::max(most, seconds);
    }
  }
  // Every transfer has a last participant; only a wait that costs something makes it late.
  const double threshold = breakdown.seconds.p50 * fraction_min;
  std::vector<Lateness> late;
  for (const WorkerCost& worker : breakdown.workers) {
    const auto found = longest.find(worker.rank);
    if (found == longest.end()) continue;
    Lateness lateness;
    lateness.rank = worker.rank;
    lateness.host = worker.host;
    std::vector<double> counted;
    for (const auto& [iteration, seconds] : found->second) {
      lateness.total += seconds;
      if (seconds > 0 && seconds >= threshold) counted.push_back(seconds);
    }
    if (counted.empty()) continue;
    lateness.share = static_cast<double>(counted.size()) / static_cast<double>(iterations.size());
    lateness.p50 = SpreadOf(std::move(counted)).p50;
    late.push_back(lateness);
  }
  std::stable_sort(late.begin(), late.end(),
                   [](const Lateness& a, const Lateness& b) { return a.total > b.total; });
  return late;
}

// Notes which workers left no trace, which iterations are missing, and whether the clocks agree
// well enough to tell who was late.
void AddNotes(const std::vector<WorkerTrace>& traces, Breakdown* breakdown) {
  std::vector<int> ranks, missing;
  for (const WorkerTrace& trace : traces) ranks.push_back(trace.rank);
  std::sort(ranks.begin(), ranks.end());
  for (int rank = 0; !ranks.empty() && rank < ranks.back(); ++rank) {
    if (!std::binary_search(ranks.begin(), ranks.end(), rank)) missing.push_back(rank);
  }
  if (!missing.empty()) {
    breakdown->notes.push_back(absl::StrCat("no trace of rank ", FormatRanks(missing),
                                            ": time spent waiting for it counts as network"));
  }
  if (breakdown->iterations.empty()) {
    breakdown->notes.push_back("the traces hold no whole iteration");
    return;
  }
  std::vector<int> iterations;
  for (const IterationCost& cost : breakdown->iterations) {
    if (iterations.empty() || iterations.back() != cost.iteration) {
      iterations.push_back(cost.iteration);
    }
  }
  for (size_t i = 1; i < iterations.size(); ++i) {
    if (iterations[i] == iterations[i - 1] + 1) continue;
    breakdown->notes.push_back(absl::StrCat("iterations ", iterations[i - 1] + 1, " to ",
                                            iterations[i] - 1,
                                            " were left out of the traces to bound their size"));
  }
  int64_t error_ns = 0;
  for (const WorkerTrace& trace : traces) error_ns = std::max(error_ns, trace.clock_error_ns);
  if (static_cast<double>(error_ns) * kNs > 0.01 * breakdown->seconds.p50) {
    breakdown->notes.push_back(absl::StrCat("the workers' clocks are known to ",
                                            (error_ns + 999) / 1000,
                                            " us only: waiting for late ranks is as uncertain"));
  }
}

}  // namespace

Spread SpreadOf(std::vector<double> values) {
  Spread spread;
  if (values.empty()) return spread;
  std::sort(values.begin(), values.end());
  const auto quantile = [&](double q) {
    const double place = q * static_cast<double>(values.size() - 1);
    const size_t below = static_cast<size_t>(std::floor(place));
    const size_t above = std::min(below + 1, values.size() - 1);
    return values[below] + (values[above] - values[below]) * (place - std::floor(place));
  };
  spread.p50 = quantile(0.5);
  spread.p99 = quantile(0.99);
  for (const double value : values) spread.mean += value / static_cast<double>(values.size());
  return spread;
}

absl::StatusOr<Breakdown> BreakDown(const std::vector<WorkerTrace>& traces,
                                    const BreakdownOptions& options) {
  std::set<int> ranks;
  for (const WorkerTrace& trace : traces) {
    SYNCOPATE_RETURN_IF_ERROR(Validate(trace));
    if (!ranks.insert(trace.rank).second) {
      return absl::InvalidArgumentError(absl::StrCat("two traces are of rank ", trace.rank));
    }
  }
  // When a transfer really began is known only from all workers, so that comes first.
  Breakdown breakdown;
  const RealBegins begins = FindRealBegins(traces);
  for (const WorkerTrace& trace : traces) {
    const ThreadTimes times = SortOut(trace);
    const WaitExplainer explainer(trace, begins);
    WorkerCost worker;
    worker.rank = trace.rank;
    worker.host = trace.host;
    // Bytes count all that was sent, also in iterations whose times are left out.
    worker.bytes = trace.dropped_bytes;
    for (const auto& [iteration, bytes] : times.bytes) worker.bytes += bytes;
    std::vector<IterationCost> costs;
    for (const auto& [number, iteration] : times.iterations) {
      if (number < options.first_iteration || IsDropped(traces, number)) continue;
      costs.push_back(CostOf(trace, times, number, explainer));
    }
    worker.iterations = static_cast<int>(costs.size());
    FillSpreads(costs, worker);
    breakdown.bytes += worker.bytes;
    breakdown.workers.push_back(worker);
    breakdown.iterations.insert(breakdown.iterations.end(), costs.begin(), costs.end());
  }
  std::sort(breakdown.iterations.begin(), breakdown.iterations.end(),
            [](const IterationCost& a, const IterationCost& b) {
              return std::pair(a.iteration, a.rank) < std::pair(b.iteration, b.rank);
            });
  std::sort(breakdown.workers.begin(), breakdown.workers.end(),
            [](const WorkerCost& a, const WorkerCost& b) { return a.rank < b.rank; });
  FillSpreads(breakdown.iterations, breakdown);
  breakdown.late = RankLateness(breakdown, options.late_fraction_min);
  AddNotes(traces, &breakdown);
  return breakdown;
}

}  // namespace syncopate::observe
