#include "probe/upkeep.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/units.h"
#include "model/topology_routes.h"

namespace syncopate::probe {
namespace {

// Flows with fewer bytes say more about the processor than about the network, and are left out.
constexpr uint64_t kBytesMin = 16 << 10;
// The iterations from which the usual times of a kind are learned.
constexpr size_t kLearnSamples = 12;
// A job waits for the network if its longest flow takes at least kHeldUpMin of the time of its
// calls. If that is less than kFreeMax it certainly does not, and what was learned is forgotten. In
// between nothing is concluded.
constexpr double kHeldUpMin = 0.85, kFreeMax = 0.75;
// Usual times are learned only from samples whose better and worse ones differ by no more than this
// factor: otherwise something disturbs the job, and would be taken for the usual.
constexpr double kSpreadMax = 1.3;
// The recent iterations by which the job's waiting for the network is judged.
constexpr size_t kSharesMax = 8;
// The evidence that a flow is slow is a cumulative sum, as in a CUSUM chart: each sample adds the
// relative excess over the usual time, less kDoubt, and the sum is never negative. What one sample
// adds is bounded by kLongerMax, so that about six samples are needed. What one takes away is
// bounded by kShorterMax, so that a short pause of whatever slows the flow does not erase all.
constexpr double kDoubt = 0.06;
constexpr double kLongerMax = 0.2, kShorterMax = 0.5;
// A flow with this evidence has become slow.
constexpr double kCertain = 0.8;
// This is enough for flows that change together with one that is certain.
constexpr double kLikely = 0.35;
constexpr size_t kRecentSamples = 6;
// Samples below this part of the usual speed tell how much slower a flow has become.
constexpr double kSlower = 0.9;
// A flow has become faster if this many of its recent samples are faster by kUpkeepFaster. That takes
// fewer samples than slowness does, since nothing but a better network makes a flow faster.
constexpr size_t kFasterSamples = 4;
constexpr double kUpkeepFaster = 1.2;
// Flows that take at least this part of the longest one's time hold up the job with it.
constexpr double kHoldsUp = 0.7;
// The iteration must gain at least this part of what faster flows gain. Otherwise the processors
// hold up the job, and its flows only seem faster because there are no queues.
constexpr double kGain = 0.4;
// When at least this part of a job's flows is slow at once, something else keeps the machines busy.
// Such iterations do not count, unless kBusyIterationsMax of them come in a row.
constexpr double kMost = 0.6;
constexpr size_t kBusyIterationsMax = 8;
// The quantile that stands for all samples: of speeds this one, of times 1 less it. It lies on the
// good side of the median, since disturbances only make samples slower, but is not the best, which
// may be an accident.
constexpr double kGoodQuantile = 0.7;
// The kinds of iterations that are remembered.
constexpr size_t kKindsMax = 32;
// What the score of a suspect with two directions loses. More flows cross both directions of a cable
// than one, so that the cable would win even where one direction explains all.
constexpr double kSecondDirection = 0.5;
// Rates that differ by less than this factor count as equal.
constexpr double kAlike = 1.1;
// In jobs with more workers than this, a regular sample of them stands for all.
constexpr size_t kSharersMax = 64;

double Quantile(std::vector<double> values, double part) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(part * static_cast<double>(values.size() - 1) + 0.5)];
}

double Longest(const std::map<std::pair<int, int>, double>& times) {
  double longest = 0;
  for (const auto& [pair, seconds] : times) longest = std::max(longest, seconds);
  return longest;
}

}  // namespace

Upkeep::Upkeep(Topology topology, std::vector<int> placement)
    : first_(topology), topology_(std::move(topology)), placement_(std::move(placement)) {}

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

double Upkeep::ElementRate(const Topology& topology, int element) {
  const size_t index = static_cast<size_t>(element);
  if (index < topology.capacities.size()) return topology.capacities[index].bandwidth;
  return topology.links[index - topology.capacities.size()].bandwidth;
}

bool Upkeep::IsReduced(int element) const {
  return ElementRate(topology_, element) * kAlike < ElementRate(first_, element);
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

Upkeep::Kind& Upkeep::KindOf(uint64_t kind, uint64_t iteration) {
  if (kinds_.size() >= kKindsMax && kinds_.count(kind) == 0) {
    kinds_.erase(std::min_element(kinds_.begin(), kinds_.end(), [](const auto& a, const auto& b) {
      return a.second.used < b.second.used;
    }));
  }
  Kind& found = kinds_[kind];
  found.used = iteration;
  return found;
}

void Upkeep::Learn(Kind& kind, std::map<Pair, double> times, double seconds) {
  kind.learned_all.push_back(seconds);
  kind.learned.push_back(std::move(times));
  if (kind.learned.size() < kLearnSamples) return;
  std::vector<double> longest, shares;
  std::map<Pair, std::vector<double>> all;
  for (size_t i = 0; i < kind.learned.size(); ++i) {
    const std::map<Pair, double>& one = kind.learned[i];
    longest.push_back(Longest(one));
    shares.push_back(longest.back() / kind.learned_all[i]);
    for (const auto& [pair, time] : one) all[pair].push_back(time);
  }
  const double better = Quantile(longest, 1 - kGoodQuantile);
  if (Quantile(std::move(shares), 0.5) < kHeldUpMin ||
      Quantile(longest, kGoodQuantile) > kSpreadMax * better) {
    kind.learned.erase(kind.learned.begin(), kind.learned.begin() + kLearnSamples / 2);
    kind.learned_all.erase(kind.learned_all.begin(), kind.learned_all.begin() + kLearnSamples / 2);
    return;
  }
  kind.longest = better;
  kind.all = Quantile(std::exchange(kind.learned_all, {}), 1 - kGoodQuantile);
  for (auto& [pair, one] : all) kind.usual[pair] = Quantile(std::move(one), 0.5);
  kind.learned.clear();
}

bool Upkeep::IsHeldUp(Kind& kind, double share) {
  kind.shares.push_back(share);
  if (kind.shares.size() < kSharesMax) return true;
  if (kind.shares.size() > kSharesMax) kind.shares.pop_front();
  const double usual = Quantile(std::vector<double>(kind.shares.begin(), kind.shares.end()), 0.5);
  if (usual < kFreeMax) kind = {};
  return usual >= kHeldUpMin;
}

std::map<Upkeep::Pair, double> Upkeep::TimesOf(absl::Span<const TrafficSample> samples) {
  const int workers = static_cast<int>(placement_.size());
  std::map<Pair, double> times;
  for (const TrafficSample& sample : samples) {
    if (sample.bytes < kBytesMin || !(sample.busy_seconds > 0) || sample.from == sample.to ||
        sample.from < 0 || sample.to < 0 || sample.from >= workers || sample.to >= workers) {
      continue;
    }
    const Pair pair = {sample.from, sample.to};
    const auto [found, added] = series_.try_emplace(pair);
    if (added) found->second.elements = ElementsOf(pair);
    if (!found->second.elements.empty()) times[pair] = sample.busy_seconds;
  }
  return times;
}

std::optional<TopologyChange> Upkeep::Observe(uint64_t iteration, uint64_t kind_id, double seconds,
                                              absl::Span<const TrafficSample> samples) {
  std::map<Pair, double> times = TimesOf(samples);
  if (times.empty() || !(seconds > 0)) return std::nullopt;
  Kind& kind = KindOf(kind_id, iteration);
  if (kind.longest == 0) {
    Learn(kind, std::move(times), seconds);
    return std::nullopt;
  }
  const double longest = Longest(times);
  const bool held_up = IsHeldUp(kind, longest / seconds);
  if (kind.longest == 0) {
    for (auto& [pair, series] : series_) series.evidence = 0;
    return std::nullopt;
  }
  std::map<Pair, Sample> fresh;
  size_t slow = 0;
  for (const auto& [pair, time] : times) {
    const auto known = kind.usual.find(pair);
    const double own = known == kind.usual.end() ? 0 : known->second;
    slow += own / time < kSlower ? 1 : 0;
    const double usual = std::max(own, kind.longest);
    // Where the processors hold up the job, there are no queues, and flows seem to be faster.
    // Nothing is gained by that.
    const double at_most = std::max(time, longest);
    const bool gained = kind.all - seconds >= kGain * (usual - at_most);
    fresh[pair] = {iteration, usual / time, gained ? usual / at_most : 0};
  }
  const bool busy = static_cast<double>(slow) >= kMost * static_cast<double>(times.size());
  busy_iterations_ = busy ? busy_iterations_ + 1 : 0;
  if (busy && busy_iterations_ <= kBusyIterationsMax - kRecentSamples) return std::nullopt;
  for (const auto& [pair, sample] : fresh) {
    Series& series = series_[pair];
    series.recent.push_back(sample);
    if (series.recent.size() > kRecentSamples) series.recent.pop_front();
    const double longer = std::clamp(1 / sample.speed - 1, -kShorterMax, kLongerMax);
    series.evidence = std::max(0.0, series.evidence + longer - kDoubt);
  }
  if (!held_up) return std::nullopt;
  std::optional<TopologyChange> change = NoticeSlower(kind);
  return change ? change : NoticeFaster(kind);
}

std::optional<TopologyChange> Upkeep::NoticeSlower(Kind& kind) {
  std::map<Pair, double> factors;
  uint64_t since = UINT64_MAX;
  bool certain = false;
  for (const auto& [pair, series] : series_) {
    if (series.evidence < kLikely) continue;
    certain = certain || series.evidence >= kCertain;
    std::vector<double> slow;
    for (const Sample& sample : series.recent) {
      if (sample.speed >= kSlower) continue;
      slow.push_back(sample.speed);
      since = std::min(since, sample.iteration);
    }
    if (!slow.empty()) factors[pair] = Quantile(std::move(slow), kGoodQuantile);
  }
  if (!certain || factors.empty()) return std::nullopt;
  TopologyChange change = Explain(factors, since, Trend::kSlower);
  Adjust(kind, factors);
  return change;
}

std::optional<TopologyChange> Upkeep::NoticeFaster(Kind& kind) {
  std::map<Pair, double> factors;
  // A flow is better than what was learned, but crosses nothing that was ever reduced. Then what was
  // learned was wrong.
  bool better = false;
  uint64_t since = UINT64_MAX;
  for (const auto& [pair, series] : series_) {
    const auto usual = kind.usual.find(pair);
    if (usual == kind.usual.end() || usual->second < kHoldsUp * kind.longest) continue;
    std::vector<double> fast;
    for (const Sample& sample : series.recent) {
      if (sample.gain <= kUpkeepFaster) continue;
      fast.push_back(sample.gain);
      since = std::min(since, sample.iteration);
    }
    if (fast.size() < kFasterSamples) continue;
    const auto reduced = [this](int element) { return IsReduced(element); };
    if (std::any_of(series.elements.begin(), series.elements.end(), reduced)) {
      factors[pair] = Quantile(std::move(fast), 0.5);
    } else {
      better = true;
    }
  }
  if (factors.empty()) {
    if (better) kind = {};
    return std::nullopt;
  }
  TopologyChange change = Explain(factors, since, Trend::kFaster);
  Adjust(kind, factors);
  return change;
}

void Upkeep::Adjust(Kind& kind, const std::map<Pair, double>& factors) {
  double longest = 0;
  for (const auto& [pair, factor] : factors) {
    double& usual = kind.usual[pair];
    usual = std::max(usual, kind.longest) / factor;
    longest = std::max(longest, usual);
  }
  if (longest > 0) {
    kind.all += longest - kind.longest;
    kind.longest = longest;
  }
  for (auto& [pair, series] : series_) {
    series.recent.clear();
    series.evidence = 0;
  }
  // The other kinds of iterations will have changed too, but nobody has seen by how much: they are
  // learned anew.
  std::erase_if(kinds_, [&](const auto& entry) { return &entry.second != &kind; });
}

std::vector<Upkeep::Suspect> Upkeep::Suspects() const {
  const int capacities = static_cast<int>(topology_.capacities.size());
  const auto element_of = [&](size_t link) {
    const std::vector<int>& drawn = topology_.links[link].capacities;
    return drawn.empty() ? capacities + static_cast<int>(link) : drawn.front();
  };
  std::vector<Suspect> suspects;
  for (int element = 0; element < capacities + static_cast<int>(topology_.links.size());
       ++element) {
    suspects.push_back({element});
  }
  std::map<std::pair<int, int>, int> directions;  // nodes: element
  for (size_t link = 0; link < topology_.links.size(); ++link) {
    const Topology::Link& found = topology_.links[link];
    if (found.capacities.size() > 1) continue;
    const auto back = directions.find({found.to, found.from});
    if (back != directions.end() && back->second != element_of(link)) {
      suspects.push_back({back->second, element_of(link)});
    }
    directions.emplace(std::make_pair(found.from, found.to), element_of(link));
  }
  return suspects;
}

std::vector<int> Upkeep::Sharers() const {
  std::vector<int> sharers(topology_.capacities.size() + topology_.links.size());
  const size_t stride = (placement_.size() + kSharersMax - 1) / kSharersMax;
  for (size_t from = 0; from < placement_.size(); from += stride) {
    for (size_t to = 0; to < placement_.size(); to += stride) {
      if (from == to) continue;
      for (const int element : ElementsOf({static_cast<int>(from), static_cast<int>(to)})) {
        ++sharers[static_cast<size_t>(element)];
      }
    }
  }
  return sharers;
}

// The suspect that explains most. A flow that changed and is not explained yet counts 2 for what it
// crosses, one that did not change counts -1, and one that is explained already counts 0. Suspects
// with the same score are told with it.
Upkeep::Verdict Upkeep::Blame(const std::set<Pair>& left, const std::map<Pair, double>& factors,
                              const std::vector<int>& sharers, Trend trend) const {
  std::map<int, std::vector<std::pair<const Series*, double>>> crossed;  // by element: worth
  for (const auto& [pair, series] : series_) {
    double worth = 0;
    if (left.count(pair) > 0) {
      worth = 2;
    } else if (factors.count(pair) == 0 && !series.recent.empty()) {
      worth = -1;
    }
    for (const int element : series.elements) crossed[element].emplace_back(&series, worth);
  }
  const auto rate = [&](const Suspect& suspect) { return ElementRate(topology_, suspect.front()); };
  const auto shared = [&](const Suspect& suspect) {
    return sharers[static_cast<size_t>(suspect.front())];
  };
  Verdict verdict;
  double best = 0;
  for (const Suspect& suspect : Suspects()) {
    double score = suspect.size() > 1 ? -kSecondDirection : 0;
    std::set<const Series*> seen;
    bool all = true;  // each direction is crossed by a flow that changed
    for (const int element : suspect) {
      if (trend == Trend::kFaster && !IsReduced(element)) all = false;
      bool any = false;
      for (const auto& [series, worth] : crossed[element]) {
        any = any || worth > 0;
        if (seen.insert(series).second) score += worth;
      }
      all = all && any;
    }
    if (!all) continue;
    const bool equal = !verdict.suspect.empty() && score == best;
    if (equal) {
      // The narrower is what the flows filled; what more of them share is more likely to change.
      const Suspect& other = verdict.suspect;
      const bool narrower = rate(suspect) * kAlike < rate(other);
      const bool wider = rate(other) * kAlike < rate(suspect);
      const bool alike = !narrower && !wider;
      if (narrower || (alike && shared(suspect) > shared(other))) {
        verdict.others.push_back(std::exchange(verdict.suspect, suspect));
      } else {
        verdict.others.push_back(suspect);
      }
    } else if (verdict.suspect.empty() || score > best) {
      verdict = {suspect, {}};
      best = score;
    }
  }
  return verdict;
}

TopologyChange Upkeep::Explain(const std::map<Pair, double>& factors, uint64_t since, Trend trend) {
  TopologyChange change;
  change.topology = topology_;
  change.topology.version = topology_.version + 1;
  change.since = since;
  const std::vector<int> sharers = Sharers();
  std::set<Pair> left;
  for (const auto& [pair, factor] : factors) left.insert(pair);
  while (!left.empty()) {
    const Verdict verdict = Blame(left, factors, sharers, trend);
    if (verdict.suspect.empty()) break;
    for (const int blamed : verdict.suspect) {
      TopologyChange::Element element;
      element.id = ElementId(blamed);
      std::vector<double> by;
      for (const Pair& pair : std::vector<Pair>(left.begin(), left.end())) {
        const std::vector<int>& crossing = series_[pair].elements;
        if (std::find(crossing.begin(), crossing.end(), blamed) == crossing.end()) continue;
        by.push_back(factors.at(pair));
        element.flows.push_back(pair);
        left.erase(pair);
      }
      if (by.empty()) continue;
      for (const Suspect& other : verdict.others) {
        std::vector<std::string> ids;
        for (const int id : other) ids.push_back(ElementId(id));
        element.or_else.push_back(absl::StrJoin(ids, "+"));
      }
      element.before = ElementRate(topology_, blamed);
      const double factor =
          std::min(Quantile(by, 0.5), std::max(1.0, ElementRate(first_, blamed) / element.before));
      element.after = element.before * factor;
      Scale(change.topology, blamed, factor);
      change.elements.push_back(std::move(element));
    }
  }
  std::vector<std::string> parts;
  for (const TopologyChange::Element& element : change.elements) {
    parts.push_back(absl::StrCat(
        element.id, element.or_else.empty() ? "" : " (or ", absl::StrJoin(element.or_else, " or "),
        element.or_else.empty() ? "" : ")", ": about ", FormatRate(element.before), " -> ",
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

}  // namespace syncopate::probe
