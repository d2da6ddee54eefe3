#include "adapt/network_detector.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/units.h"
#include "model/topology_routes.h"

namespace syncopate::adapt {
namespace {

constexpr double kSlotSeconds = static_cast<double>(NetworkDetector::kSlotNs) * 1e-9;
// A flow with less in a slot says more about processors and latencies than about rates.
constexpr double kBytesMin = 32 << 10, kSustainedBytesMin = 4 << 10;
constexpr double kBusyMin = 0.4;   // part of a slot
constexpr double kBusyFull = 0.9;  // likewise: as good as all of it
// A rate below this part of what is known is a slower one; above kMoreThanKnown it is a faster one.
constexpr double kLessThanKnown = 0.85, kMoreThanKnown = 1.12;
// A change is named where less is left than this part. Some flows of others beside many of the job take less.
constexpr double kNamedBelow = 0.77;
// The samples by which a flow is judged, and how many of them must be too short. In the others it may have been
// held up elsewhere.
constexpr size_t kSamples = 16, kAgree = 8;
// What is remembered of a flow.
constexpr size_t kSamplesMax = 60;
constexpr int64_t kSlotsRemembered = 100;
// The samples that tell what a flow in a network that nobody has measured usually finds.
constexpr size_t kUsualSamples = 20;
// What fills a link of a constant rate differs by less than this factor between slots. Flows of others and
// processors that are busy change all the time.
constexpr double kSteady = 1.3;
// An element has carried more than it now seems to.
constexpr double kCarriesMore = 1.2;
// A change is certain when this many calls in a row name the same, with rates that differ by less than kAlike.
constexpr int kCallsThatAgree = 3;
constexpr double kAlike = 1.1;
// As many causes are thought of at once.
constexpr size_t kCausesMax = 3;
constexpr size_t kSlowFlowsMax = 64;
constexpr size_t kSlotsWaitingMax = 200;

double Quantile(std::vector<double> values, double part) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(part * static_cast<double>(values.size() - 1) + 0.5)];
}

std::string Names(const std::vector<NetworkFindings::Pair>& flows) {
  constexpr size_t kNamed = 8;
  const size_t named = std::min(flows.size(), kNamed);
  return absl::StrCat(absl::StrJoin(flows.begin(), flows.begin() + static_cast<long>(named), ", ",
                                    [](std::string* out, const NetworkFindings::Pair& pair) {
                                      absl::StrAppend(out, pair.first, "->", pair.second);
                                    }),
                      named < flows.size() ? ", ..." : "");
}

}  // namespace

std::string NetworkFindings::Reason() const {
  std::vector<std::string> parts;
  for (const Change& change : changes) {
    // All of them are slower, or all are faster.
    const char* trend = change.after < change.before ? "slower: " : "faster: ";
    parts.push_back(absl::StrCat(parts.empty() ? trend : "", change.id, ": about ",
                                 FormatRate(change.before), " -> ", FormatRate(change.after),
                                 ", seen on traffic ", Names(change.flows)));
  }
  if (!suspects.empty()) {
    parts.push_back(absl::StrCat("something is slower, unknown which of ",
                                 absl::StrJoin(suspects, ", "), ", seen on traffic ", Names(slow)));
  }
  return absl::StrJoin(parts, "; ");
}

// ---- what there is

NetworkDetector::NetworkDetector(Topology topology, std::vector<int> placement, bool measured)
    : topology_(std::move(topology)), placement_(std::move(placement)), measured_(measured) {
  LearnElements();
}

void NetworkDetector::LearnElements() {
  elements_.clear();
  cables_.clear();
  const size_t capacities = topology_.capacities.size();
  for (const Topology::Capacity& capacity : topology_.capacities) {
    elements_.push_back({.rate = capacity.bandwidth, .first = capacity.bandwidth});
  }
  for (const Topology::Link& link : topology_.links) {
    elements_.push_back({.rate = link.bandwidth, .first = link.bandwidth});
  }
  if (!measured_) {
    for (Element& element : elements_) element = {};
  }
  std::map<std::pair<int, int>, int> links;  // ends; its only element
  for (size_t i = 0; i < topology_.links.size(); ++i) {
    const Topology::Link& link = topology_.links[i];
    if (link.capacities.size() > 1) continue;
    links[{link.from, link.to}] =
        link.capacities.empty() ? static_cast<int>(capacities + i) : link.capacities.front();
  }
  for (const auto& [ends, element] : links) {
    const auto back = links.find({ends.second, ends.first});
    if (ends.first < ends.second && back != links.end() && back->second != element) {
      cables_.emplace_back(element, back->second);
    }
  }
}

void NetworkDetector::Adopt(Topology topology, std::vector<int> placement, bool measured) {
  std::map<std::string, Element> before;
  for (size_t i = 0; i < elements_.size(); ++i) {
    before[ElementId(static_cast<int>(i))] = elements_[i];
  }
  topology_ = std::move(topology);
  placement_ = std::move(placement);
  measured_ = measured;
  series_.clear();
  last_named_.clear();
  LearnElements();
  for (size_t i = 0; i < elements_.size(); ++i) {
    const auto found = before.find(ElementId(static_cast<int>(i)));
    if (found == before.end()) continue;
    elements_[i].first = std::max(elements_[i].first, measured ? found->second.first : 0);
    if (found->second.rate == elements_[i].rate) elements_[i].shown_ns = found->second.shown_ns;
  }
}

std::vector<int> NetworkDetector::WayOf(const Pair& pair) const {
  std::vector<int> way;
  Routes routes(topology_);
  const absl::StatusOr<std::vector<int>> links = routes.Between(
      placement_[static_cast<size_t>(pair.first)], placement_[static_cast<size_t>(pair.second)]);
  if (!links.ok()) return way;
  for (const int link : *links) {
    const Topology::Link& found = topology_.links[static_cast<size_t>(link)];
    const auto is_device = [&](int node) {
      return topology_.nodes[static_cast<size_t>(node)].kind == NodeKind::kDevice;
    };
    // From a device to its own host there is no network, unless there is nothing else.
    if (found.capacities.empty() && links->size() > 1 &&
        (is_device(found.from) || is_device(found.to))) {
      continue;
    }
    way.insert(way.end(), found.capacities.begin(), found.capacities.end());
    if (found.capacities.empty()) {
      way.push_back(static_cast<int>(topology_.capacities.size()) + link);
    }
  }
  return way;
}

std::string NetworkDetector::ElementId(int element) const {
  const size_t index = static_cast<size_t>(element);
  if (index < topology_.capacities.size()) return topology_.capacities[index].id;
  return topology_.links[index - topology_.capacities.size()].id;
}

void NetworkDetector::SetRate(int element, double rate) {
  elements_[static_cast<size_t>(element)].rate = rate;
  const size_t index = static_cast<size_t>(element);
  if (index >= topology_.capacities.size()) {
    topology_.links[index - topology_.capacities.size()].bandwidth = rate;
    return;
  }
  topology_.capacities[index].bandwidth = rate;
  // The links that draw on nothing else are as fast as it is.
  for (Topology::Link& link : topology_.links) {
    if (link.capacities == std::vector<int>{element}) link.bandwidth = rate;
  }
}

std::vector<CapacityKnown> NetworkDetector::Known(int64_t now_ns) const {
  std::vector<CapacityKnown> known;
  for (size_t i = 0; i < topology_.capacities.size(); ++i) {
    const Element& element = elements_[i];
    known.push_back(
        {.id = topology_.capacities[i].id,
         .rate = element.rate,
         .at_least = element.at_least,
         .age_seconds =
             element.shown_ns < 0
                 ? -1
                 : std::max(0.0, static_cast<double>(now_ns - element.shown_ns) * 1e-9)});
  }
  return known;
}

// ---- what comes

void NetworkDetector::Take(const TrafficRecord& record) {
  const int workers = static_cast<int>(placement_.size());
  if (record.to < 0 || record.to >= workers || record.begin_ns < 0) return;
  const int64_t first = record.begin_ns / kSlotNs;
  const double late = static_cast<double>(record.begin_ns % kSlotNs) / static_cast<double>(kSlotNs);
  for (const TrafficRecord::Flow& flow : record.flows) {
    if (flow.from < 0 || flow.from >= workers || flow.from == record.to) continue;
    for (size_t i = 0; i < flow.slots.size(); ++i) {
      if (flow.slots[i].bytes == 0 && flow.slots[i].busy_ns <= 0) continue;
      // Slots of workers begin at different times, and are taken to be even inside.
      for (const auto& [slot, part] : {std::pair(first + static_cast<int64_t>(i), 1 - late),
                                       std::pair(first + static_cast<int64_t>(i) + 1, late)}) {
        if (slot < judged_ || part <= 0) continue;
        if (slots_.size() >= kSlotsWaitingMax && slots_.count(slot) == 0) continue;
        Cell& cell = slots_[slot][{flow.from, record.to}];
        cell.bytes += part * static_cast<double>(flow.slots[i].bytes);
        cell.busy_ns += part * static_cast<double>(flow.slots[i].busy_ns);
      }
    }
  }
}

void NetworkDetector::Add(int64_t slot, const Slot& cells) {
  std::map<int, std::vector<const Cell*>> crossing;
  for (const auto& [pair, cell] : cells) {
    const auto [found, added] = series_.try_emplace(pair);
    if (added) found->second.way = WayOf(pair);
    for (const int element : found->second.way) crossing[element].push_back(&cell);
  }
  for (const auto& [pair, cell] : cells) {
    Series& series = series_[pair];
    const double busy = std::min(1.0, cell.busy_ns / static_cast<double>(kSlotNs));
    Sample sample = {.slot = slot,
                     .sustained = busy >= kBusyFull && series.full_slot == slot - 1,
                     .most = {},
                     .least = {},
                     .carried = {}};
    if (busy >= kBusyFull) series.full_slot = slot;
    const double bytes_min = sample.sustained ? kSustainedBytesMin : kBytesMin;
    if (cell.bytes < bytes_min || busy < kBusyMin || series.way.empty()) continue;
    for (const int element : series.way) {
      // How much of the others' bytes went beside this flow's is not known: at most all that they had in
      // flight for as long, at least what they had if they went one after the other.
      double beside = 0, all = 0, times = 0;
      for (const Cell* other : crossing[element]) {
        const double time = std::max(other->busy_ns, 1.0);
        beside += other->bytes * std::min(1.0, cell.busy_ns / time);
        all += other->bytes;
        times += time * 1e-9;
      }
      sample.carried.push_back(all / kSlotSeconds);
      sample.most.push_back(beside / (busy * kSlotSeconds));
      sample.least.push_back(std::min(all / std::min(times, kSlotSeconds), sample.most.back()));
    }
    Learn(series, sample);
    series.samples.push_back(std::move(sample));
    if (series.samples.size() > kSamplesMax) series.samples.pop_front();
  }
}

void NetworkDetector::Learn(Series& series, const Sample& sample) {
  const int64_t at_ns = (sample.slot + 1) * kSlotNs;
  if (!measured_) {
    if (!series.usual.empty() || series.samples.size() < kUsualSamples) return;
    for (size_t i = 0; i < series.way.size(); ++i) {
      std::vector<double> rates;
      for (const Sample& one : series.samples) rates.push_back(one.most[i]);
      series.usual.push_back(Quantile(std::move(rates), 0.6));
      Element& element = elements_[static_cast<size_t>(series.way[i])];
      element.rate = std::max(element.rate, series.usual.back());
      element.first = element.rate;
      element.at_least = true;
      element.shown_ns = at_ns;
    }
    return;
  }
  // What is nearest to what it is known to carry holds the flow up.
  double nearest = 0;
  int which = -1;
  for (size_t i = 0; i < series.way.size(); ++i) {
    const double part = sample.most[i] / elements_[static_cast<size_t>(series.way[i])].rate;
    if (part > nearest) {
      nearest = part;
      which = series.way[i];
    }
  }
  if (nearest >= kLessThanKnown) elements_[static_cast<size_t>(which)].shown_ns = at_ns;
}

double NetworkDetector::Carried(const Series& series, size_t place, int64_t since) {
  double sum = 0;
  size_t count = 0;
  for (auto sample = series.samples.rbegin();
       sample != series.samples.rend() && count < kSamples && sample->slot >= since; ++sample) {
    sum += sample->carried[place];
    ++count;
  }
  return count < kAgree ? 0 : sum / static_cast<double>(count);
}

// ---- what has become slower

bool NetworkDetector::IsShort(const Series& series, const Sample& sample) const {
  if (!measured_ && series.usual.empty()) return false;
  for (size_t i = 0; i < series.way.size(); ++i) {
    const double known =
        measured_ ? elements_[static_cast<size_t>(series.way[i])].rate : series.usual[i];
    if (sample.most[i] >= kLessThanKnown * known) return false;
  }
  return true;
}

NetworkDetector::Rates NetworkDetector::ShortRates(const Series& series, size_t place) const {
  Rates rates;
  for (const Sample& sample : series.samples) {
    if (!IsShort(series, sample)) continue;
    rates.all.push_back((sample.most[place] + 2 * sample.least[place]) / 3);
    if (sample.sustained) rates.sustained.push_back(rates.all.back());
  }
  return rates;
}

bool NetworkDetector::IsSlow(const Series& series) const {
  if (series.samples.size() < kSamples) return false;
  size_t agree = 0;
  for (size_t i = series.samples.size() - kSamples; i < series.samples.size(); ++i) {
    agree += IsShort(series, series.samples[i]) ? 1 : 0;
  }
  return agree >= kAgree;
}

NetworkDetector::Explanation NetworkDetector::Explains(
    int element, const std::vector<const Series*>& slow) const {
  Rates found_rates;
  int64_t since = INT64_MAX;
  for (const Series* series : slow) {
    const auto found = std::find(series->way.begin(), series->way.end(), element);
    since = std::min(since, series->samples[series->samples.size() - kSamples].slot);
    if (found == series->way.end()) continue;
    const Rates its = ShortRates(*series, static_cast<size_t>(found - series->way.begin()));
    found_rates.all.insert(found_rates.all.end(), its.all.begin(), its.all.end());
    found_rates.sustained.insert(found_rates.sustained.end(), its.sustained.begin(),
                                 its.sustained.end());
  }
  const std::vector<double>& rates = found_rates.Best();
  if (rates.empty()) return {};
  const bool steady =
      rates.size() >= kSamples && Quantile(rates, 0.95) <= kSteady * Quantile(rates, 0.05);
  const double rate = Quantile(rates, 0.5);
  const double known = elements_[static_cast<size_t>(element)].rate;
  if (measured_ && rate >= kLessThanKnown * known) return {};
  // It has carried more meanwhile.
  for (const auto& [pair, series] : series_) {
    const auto found = std::find(series.way.begin(), series.way.end(), element);
    if (found == series.way.end()) continue;
    const size_t place = static_cast<size_t>(found - series.way.begin());
    if (Carried(series, place, since) >= kCarriesMore * rate) return {};
  }
  return {.rate = rate, .steady = steady && (!measured_ || rate < kNamedBelow * known)};
}

std::vector<NetworkDetector::Cause> NetworkDetector::Causes(
    const std::vector<const Series*>& slow) const {
  std::map<int, uint64_t> explained;  // by element: flows
  for (size_t i = 0; i < slow.size(); ++i) {
    for (const int element : slow[i]->way) explained.try_emplace(element, 0);
  }
  for (auto& [element, flows] : explained) {
    const Explanation why = Explains(element, slow);
    for (size_t i = 0; i < slow.size() && why.rate > 0; ++i) {
      const auto found = std::find(slow[i]->way.begin(), slow[i]->way.end(), element);
      if (found == slow[i]->way.end()) continue;
      const size_t place = static_cast<size_t>(found - slow[i]->way.begin());
      // The flow finds the element full.
      const double found_rate = Quantile(ShortRates(*slow[i], place).Best(), 0.5);
      if (!why.steady ||
          (found_rate <= kCarriesMore * why.rate && found_rate * kCarriesMore >= why.rate)) {
        flows |= uint64_t{1} << i;
      }
    }
  }
  std::vector<Cause> causes;
  for (const auto& [element, flows] : explained) {
    if (flows != 0) causes.push_back({.elements = {element}, .flows = flows});
  }
  for (const auto& [there, back] : cables_) {
    const auto a = explained.find(there), b = explained.find(back);
    if (a == explained.end() || b == explained.end() || a->second == 0 || b->second == 0) continue;
    causes.push_back({.elements = {there, back}, .flows = a->second | b->second});
  }
  return causes;
}

namespace {

// Calls `found` with every set of `size` of `count` numbers.
template <typename Found>
void Choose(size_t count, size_t size, std::vector<size_t>& chosen, const Found& found) {
  if (chosen.size() == size) return found(chosen);
  for (size_t next = chosen.empty() ? 0 : chosen.back() + 1; next < count; ++next) {
    chosen.push_back(next);
    Choose(count, size, chosen, found);
    chosen.pop_back();
  }
}

}  // namespace

void NetworkDetector::FindSlower(NetworkFindings& findings) {
  std::vector<const Series*> slow;
  for (const auto& [pair, series] : series_) {
    if (slow.size() == kSlowFlowsMax || !IsSlow(series)) continue;
    slow.push_back(&series);
    findings.slow.push_back(pair);
  }
  if (slow.empty()) return last_named_.clear();
  const std::vector<Cause> causes = Causes(slow);
  const uint64_t all = slow.size() == 64 ? ~uint64_t{0} : (uint64_t{1} << slow.size()) - 1;
  // The fewest causes that explain everything. What is in all such sets is certain.
  std::optional<std::set<int>> certain;
  std::set<int> possible;
  for (size_t size = 1; size <= kCausesMax && !certain; ++size) {
    std::vector<size_t> chosen;
    Choose(causes.size(), size, chosen, [&](const std::vector<size_t>& which) {
      uint64_t explained = 0;
      for (const size_t one : which) explained |= causes[one].flows;
      if (explained != all) return;
      std::set<int> elements;
      for (const size_t one : which) {
        elements.insert(causes[one].elements.begin(), causes[one].elements.end());
      }
      possible.insert(elements.begin(), elements.end());
      if (!certain) {
        certain = std::move(elements);
        return;
      }
      std::erase_if(*certain, [&](int element) { return elements.count(element) == 0; });
    });
  }
  if (!certain || !measured_ || certain->size() < possible.size()) {
    if (!certain) {
      for (const Series* series : slow) possible.insert(series->way.begin(), series->way.end());
    }
    for (const int element : possible) findings.suspects.push_back(ElementId(element));
    last_named_.clear();
    return;
  }
  std::map<int, double> rates;
  bool same = true;  // as the calls before
  bool steady = true;
  for (const int element : *certain) {
    const Explanation why = Explains(element, slow);
    steady = steady && why.steady;
    rates[element] = why.rate;
    const auto before = last_named_.find(element);
    same = same && before != last_named_.end() && rates[element] <= kAlike * before->second &&
           before->second <= kAlike * rates[element];
  }
  if (!steady) {
    for (const int element : *certain) findings.suspects.push_back(ElementId(element));
    return last_named_.clear();
  }
  same = same && rates.size() == last_named_.size();
  named_in_a_row_ = same ? named_in_a_row_ + 1 : 1;
  last_named_ = rates;
  if (named_in_a_row_ < kCallsThatAgree) return;
  last_named_.clear();
  for (const auto& [element, rate] : rates) {
    NetworkFindings::Change change = {.id = ElementId(element),
                                      .before = elements_[static_cast<size_t>(element)].rate,
                                      .after = rate,
                                      .flows = {}};
    for (size_t i = 0; i < slow.size(); ++i) {
      const std::vector<int>& way = slow[i]->way;
      if (std::find(way.begin(), way.end(), element) != way.end()) {
        change.flows.push_back(findings.slow[i]);
      }
    }
    findings.changes.push_back(std::move(change));
  }
  for (const auto& [element, rate] : rates) SetRate(element, rate);
}

// ---- what has become faster

void NetworkDetector::FindFaster(NetworkFindings& findings) {
  if (!measured_) return;
  std::map<int, NetworkFindings::Change> faster;
  for (const auto& [pair, series] : series_) {
    if (series.samples.size() < kSamples) continue;
    for (size_t place = 0; place < series.way.size(); ++place) {
      const int element = series.way[place];
      const Element& known = elements_[static_cast<size_t>(element)];
      // What is better than at first is not noticed: a link that was idle lets bytes through at any rate, and what
      // was measured was measured while nothing else disturbed it, one hopes.
      if (known.rate >= known.first / kAlike ||
          Carried(series, place, 0) < kMoreThanKnown * known.rate) {
        continue;
      }
      std::vector<double> rates;
      size_t elsewhere = 0;  // it is held up by something else now
      for (size_t i = series.samples.size() - kSamples; i < series.samples.size(); ++i) {
        const Sample& sample = series.samples[i];
        if (sample.sustained) rates.push_back(sample.most[place]);
        bool held = false;
        for (size_t other = 0; other < series.way.size(); ++other) {
          const double rate = elements_[static_cast<size_t>(series.way[other])].rate;
          held = held || (other != place && sample.most[other] >= kLessThanKnown * rate);
        }
        elsewhere += held ? 1 : 0;
      }
      double rate = std::max(Quantile(rates, 0.5), Carried(series, place, 0));
      if (2 * elsewhere >= kSamples || rates.size() < kAgree / 2 ||
          rate >= kLessThanKnown * known.first) {
        rate = known.first;
      }
      NetworkFindings::Change& change = faster[element];
      change.id = ElementId(element);
      change.before = known.rate;
      change.after = std::max(change.after, rate);
      change.flows.push_back(pair);
    }
  }
  // What has fallen for one reason, as both directions of a cable do, comes back with it.
  for (const auto& [there, back] : cables_) {
    for (const auto& [risen, other] : {std::pair(there, back), std::pair(back, there)}) {
      const auto found = faster.find(risen);
      const Element& a = elements_[static_cast<size_t>(risen)];
      const Element& b = elements_[static_cast<size_t>(other)];
      if (found == faster.end() || faster.count(other) > 0 || found->second.after < a.first)
        continue;
      const double fell_alike = (b.rate / b.first) / (a.rate / a.first);
      if (b.rate * kAlike > b.first || fell_alike > kAlike || fell_alike * kAlike < 1) continue;
      faster[other] = {
          .id = ElementId(other), .before = b.rate, .after = b.first, .flows = found->second.flows};
    }
  }
  for (auto& [element, change] : faster) {
    SetRate(element, change.after);
    findings.changes.push_back(std::move(change));
  }
}

NetworkFindings NetworkDetector::Judge(int64_t until_ns) {
  const int64_t until = until_ns / kSlotNs;
  while (!slots_.empty() && slots_.begin()->first < until) {
    Add(slots_.begin()->first, slots_.begin()->second);
    slots_.erase(slots_.begin());
  }
  judged_ = std::max(judged_, until);
  for (auto& [pair, series] : series_) {
    while (!series.samples.empty() && series.samples.front().slot < until - kSlotsRemembered) {
      series.samples.pop_front();
    }
  }
  NetworkFindings findings;
  FindFaster(findings);
  if (findings.changes.empty()) FindSlower(findings);
  if (!findings.changes.empty()) {
    for (auto& [pair, series] : series_) series.samples.clear();
    topology_.version += 1;
    topology_.source = findings.Reason().substr(0, 256);
  }
  return findings;
}

}  // namespace syncopate::adapt
