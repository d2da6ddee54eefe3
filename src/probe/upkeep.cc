#include "probe/upkeep.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/units.h"
#include "model/topology_routes.h"

namespace syncopate {
namespace {

constexpr uint64_t kBytesMin = 16 << 10;  // less says more about the processor than the network
constexpr size_t kLearnSamples = 12;
constexpr size_t kRecentSamples = 6;
// All of the recent samples of a flow must be slower; of faster ones, which nothing but a better
// network can cause, so many.
constexpr size_t kFasterSamples = 5;
constexpr double kSlower = 0.78, kFaster = 1.28;  // of the reference
// When so many of a job's flows are slow at once, something else keeps the machines busy. Such
// iterations do not count, unless there are so many of them in a row.
constexpr double kMost = 0.6;
constexpr size_t kBusyIterationsMax = 8;
// What a good sample is: few are better, whatever disturbs the others.
constexpr double kGoodQuantile = 0.7;

double Quantile(std::vector<double> values, double part) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(part * static_cast<double>(values.size() - 1) + 0.5)];
}

}  // namespace

Upkeep::Upkeep(Topology topology, std::vector<int> placement)
    : topology_(std::move(topology)), placement_(std::move(placement)) {}

void Upkeep::Forget() { series_.clear(); }

std::vector<int> Upkeep::ElementsOf(const Pair& pair) const {
  std::vector<int> elements;
  Routes routes(topology_);
  const absl::StatusOr<std::vector<int>> links = routes.Between(
      placement_[static_cast<size_t>(pair.first)], placement_[static_cast<size_t>(pair.second)]);
  if (!links.ok()) return elements;
  for (const int link : *links) {
    const Topology::Link& found = topology_.links[static_cast<size_t>(link)];
    const auto inside = [&](int node) {
      return topology_.nodes[static_cast<size_t>(node)].kind == NodeKind::kDevice;
    };
    if (inside(found.from) || inside(found.to)) {
      // From a device to its own host: no network, unless there is nothing else.
      if (found.capacities.empty() && links->size() > 1) continue;
    }
    for (const int capacity : found.capacities) elements.push_back(capacity);
    if (found.capacities.empty()) {
      elements.push_back(static_cast<int>(topology_.capacities.size()) + link);
    }
  }
  return elements;
}

std::string Upkeep::ElementId(int element) const {
  const size_t index = static_cast<size_t>(element);
  if (index < topology_.capacities.size()) return topology_.capacities[index].id;
  return topology_.links[index - topology_.capacities.size()].id;
}

double Upkeep::ElementRate(int element) const {
  const size_t index = static_cast<size_t>(element);
  if (index < topology_.capacities.size()) return topology_.capacities[index].bandwidth;
  return topology_.links[index - topology_.capacities.size()].bandwidth;
}

void Upkeep::Scale(Topology& topology, int element, double factor) const {
  const size_t index = static_cast<size_t>(element);
  if (index >= topology.capacities.size()) {
    topology.links[index - topology.capacities.size()].bandwidth *= factor;
    return;
  }
  topology.capacities[index].bandwidth *= factor;
  // The links that draw on nothing else are as fast as it is.
  for (Topology::Link& link : topology.links) {
    if (link.capacities == std::vector<int>{element}) link.bandwidth *= factor;
  }
}

void Upkeep::Learn(Series& series, double rate) {
  series.learned.push_back(rate);
  if (series.learned.size() < kLearnSamples) return;
  series.reference = Quantile(series.learned, kGoodQuantile);
  series.learned.clear();
}

Upkeep::Trend Upkeep::TrendOf(const Series& series) const {
  if (series.recent.size() < kRecentSamples) return Trend::kNone;
  size_t slower = 0, faster = 0;
  for (const auto& [iteration, rate] : series.recent) {
    slower += rate < kSlower * series.reference ? 1 : 0;
    faster += rate > kFaster * series.reference ? 1 : 0;
  }
  if (slower == kRecentSamples) return Trend::kSlower;
  return faster >= kFasterSamples ? Trend::kFaster : Trend::kNone;
}

std::optional<TopologyChange> Upkeep::Observe(uint64_t iteration,
                                              absl::Span<const TrafficSample> samples) {
  const int workers = static_cast<int>(placement_.size());
  std::vector<std::pair<Series*, double>> known;  // bytes/s
  size_t slow = 0;
  for (const TrafficSample& sample : samples) {
    if (sample.bytes < kBytesMin || !(sample.busy_seconds > 0) || sample.from == sample.to ||
        sample.from < 0 || sample.to < 0 || sample.from >= workers || sample.to >= workers) {
      continue;
    }
    const Pair pair = {sample.from, sample.to};
    const auto [found, added] = series_.try_emplace(pair);
    Series& series = found->second;
    if (added) series.elements = ElementsOf(pair);
    if (series.elements.empty()) continue;
    const double rate = static_cast<double>(sample.bytes) / sample.busy_seconds;
    if (series.reference == 0) {
      Learn(series, rate);
      continue;
    }
    known.emplace_back(&series, rate);
    slow += rate < kSlower * series.reference ? 1 : 0;
  }
  const bool busy = static_cast<double>(slow) >= kMost * static_cast<double>(known.size());
  busy_iterations_ = busy && slow > 0 ? busy_iterations_ + 1 : 0;
  if (busy_iterations_ > 0 && busy_iterations_ <= kBusyIterationsMax - kRecentSamples) {
    return std::nullopt;
  }
  for (const auto& [series, rate] : known) {
    series->recent.emplace_back(iteration, rate);
    if (series->recent.size() > kRecentSamples) series->recent.pop_front();
  }
  for (const Trend trend : {Trend::kSlower, Trend::kFaster}) {
    std::vector<Pair> changed;
    for (const auto& [pair, series] : series_) {
      if (TrendOf(series) == trend) changed.push_back(pair);
    }
    if (!changed.empty()) return Explain(std::move(changed), trend);
  }
  return std::nullopt;
}

// From 0 to 1: how little a flow that has not changed for certain has gone the way of those that
// have.
double Upkeep::Steadiness(const Series& series, Trend trend) const {
  std::vector<double> rates;
  for (const auto& [iteration, rate] : series.recent) rates.push_back(rate);
  const double factor = Quantile(rates, kGoodQuantile) / series.reference;
  const double way =
      trend == Trend::kSlower ? (1 - factor) / (1 - kSlower) : (factor - 1) / (kFaster - 1);
  return 1 - std::clamp(way, 0.0, 1.0);
}

TopologyChange Upkeep::Explain(std::vector<Pair> changed, Trend trend) {
  TopologyChange change;
  change.topology = topology_;
  change.topology.version = topology_.version + 1;
  // What a changed flow achieves now, as a part of what it did.
  std::map<Pair, double> factors;
  uint64_t since = UINT64_MAX;
  for (const Pair& pair : changed) {
    Series& series = series_[pair];
    std::vector<double> rates;
    for (const auto& [iteration, rate] : series.recent) rates.push_back(rate);
    since = std::min(since, series.recent.front().first);
    const double now = Quantile(rates, kGoodQuantile);
    factors[pair] = now / series.reference;
    series.reference = now;
    series.recent.clear();
  }
  change.since = since;
  // The element that explains most: crossed by many flows that changed and few that did not. Then
  // the next one for what is left.
  std::set<Pair> left(changed.begin(), changed.end());
  while (!left.empty()) {
    std::map<int, std::pair<int, double>> crossed;  // element: changed flows left, others
    for (const auto& [pair, series] : series_) {
      for (const int element : series.elements) {
        if (left.count(pair) > 0) {
          ++crossed[element].first;
        } else if (factors.count(pair) == 0 && !series.recent.empty()) {
          crossed[element].second += Steadiness(series, trend);
        }
      }
    }
    int best = -1;
    double best_score = -1e9;
    for (const auto& [element, counts] : crossed) {
      if (counts.first == 0) continue;
      // Among equals the narrower: it is what the flows filled.
      const double score = 2.0 * counts.first - counts.second;
      const bool better =
          score > best_score || (score == best_score && ElementRate(element) < ElementRate(best));
      if (better) best = element, best_score = score;
    }
    TopologyChange::Element element;
    element.id = ElementId(best);
    std::vector<double> by;
    for (const Pair& pair : std::vector<Pair>(left.begin(), left.end())) {
      const std::vector<int>& crossing = series_[pair].elements;
      if (std::find(crossing.begin(), crossing.end(), best) == crossing.end()) continue;
      by.push_back(factors[pair]);
      element.flows.push_back(pair);
      left.erase(pair);
    }
    const double factor = Quantile(by, 0.5);
    element.before = ElementRate(best);
    element.after = element.before * factor;
    Scale(change.topology, best, factor);
    change.elements.push_back(std::move(element));
  }
  std::vector<std::string> parts;
  for (const TopologyChange::Element& element : change.elements) {
    parts.push_back(
        absl::StrCat(element.id, ": about ", FormatRate(element.before), " -> ",
                     FormatRate(element.after), ", seen on traffic ",
                     absl::StrJoin(element.flows, ", ", [](std::string* out, const Pair& pair) {
                       absl::StrAppend(out, pair.first, "->", pair.second);
                     })));
  }
  change.reason = absl::StrCat(trend == Trend::kSlower ? "slower" : "faster", " since iteration ",
                               change.since, ": ", absl::StrJoin(parts, "; "));
  change.topology.source = change.reason.substr(0, 256);
  topology_ = change.topology;
  return change;
}

}  // namespace syncopate
