#include "probe/infer.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/median.h"
#include "base/status.h"
#include "probe/evidence.h"
#include "probe/experiments.h"
#include "probe/find_racks.h"

namespace syncopate::probe {
namespace {

using Flow = Oracle::Flow;

// The hosts of other racks that each host sends to when uplinks are measured.
constexpr size_t kTargetsPerHost = 2;
constexpr int kLatencyRackPairsMax = 16;
// Racks of one pod take at least this part of their uplinks from each other. Racks that share
// something with others get half or less of it.
constexpr double kPodSlack = 0.8;
// The length of experiments from which a capacity is taken, in units of time.
constexpr int kLongLength = 2;
constexpr int kUplinkRunsMax = 2;
// A fan of flows fills a NIC if it goes to kFanMin to kInferFanMax hosts that together can take
// kFanReserve times what the NIC carries.
constexpr size_t kFanMin = 2, kInferFanMax = 6;
constexpr double kFanReserve = 1.5;
// How many experiments of length 1 follow the first rounds. The unit of time is chosen so that they
// fit into the budget.
constexpr int kLaterExperiments = 35;
constexpr double kUnitSecondsMin = 0.1, kUnitSecondsMax = 0.3;

// Measures what the uplinks of known racks carry. The second half of the inference.
class Capacities {
 public:
  Capacities(Experiments& experiments, NetworkShape& shape)
      : experiments_(experiments), shape_(shape) {}

  absl::Status Measure() {
    if (shape_.racks.size() < 2) return absl::OkStatus();
    SYNCOPATE_RETURN_IF_ERROR(MeasureUplinks());
    return FindPods();
  }

  // Measures what NICs carry. The hosts of each rack send in a circle, all racks at once. A host that
  // was faster before, when it talked to others, is measured again alone, with as many partners as
  // it takes to fill its NIC.
  absl::Status MeasureNics() {
    experiments_.Begin("NICs");
    for (const bool forth : {true, false}) {
      std::vector<Flow> flows;
      for (const NetworkShape::Rack& rack : shape_.racks) {
        const size_t hosts = rack.hosts.size();
        for (size_t i = 0; i < hosts && hosts > 1; ++i) {
          const int a = rack.hosts[i], b = rack.hosts[(i + 1) % hosts];
          flows.push_back(forth ? Flow{a, b} : Flow{b, a});
        }
      }
      SYNCOPATE_RETURN_IF_ERROR(experiments_.Rates(flows, kLongLength).status());
    }
    for (int h = 0; h < experiments_.hosts(); ++h) {
      bool filled = false;
      for (int run = 0; run < 2 && !filled; ++run) {
        const Experiments::Capacity out = OutOf(h), in = InTo(h);
        host(h).out = out.rate;
        host(h).in = in.rate;
        filled = out.sure && in.sure;
        if (filled || !experiments_.TimeFor(kLongLength)) break;
        SYNCOPATE_RETURN_IF_ERROR(experiments_.Rates(Fan(h), kLongLength).status());
      }
      host(h).out = OutOf(h).rate;
      host(h).in = InTo(h).rate;
    }
    return absl::OkStatus();
  }

 private:
  NetworkShape::Host& host(int h) { return shape_.hosts[static_cast<size_t>(h)]; }
  const std::vector<int>& hosts_of(size_t rack) const { return shape_.racks[rack].hosts; }

  Experiments::Capacity OutOf(int h) const {
    return experiments_.CapacityBetween([h](int other) { return other == h; },
                                        [](int) { return true; });
  }
  Experiments::Capacity InTo(int h) const {
    return experiments_.CapacityBetween([](int) { return true; },
                                        [h](int other) { return other == h; });
  }

  // Flows of `h` with hosts of its rack, the fastest first, and then with others, until they can do
  // more than it.
  std::vector<Flow> Fan(int h) {
    std::vector<int> others;
    for (int other = 0; other < experiments_.hosts(); ++other) {
      if (other != h) others.push_back(other);
    }
    std::stable_sort(others.begin(), others.end(), [&](int a, int b) {
      const bool near_a = host(a).rack == host(h).rack, near_b = host(b).rack == host(h).rack;
      if (near_a != near_b) return near_a;
      return host(a).out > host(b).out;
    });
    std::vector<Flow> flows;
    double possible = 0;
    for (const int other : others) {
      if (flows.size() >= 2 * kFanMin && possible > kFanReserve * host(h).out) break;
      if (flows.size() == 2 * kInferFanMax) break;
      AddBothWays(flows, h, other);
      const bool near = host(other).rack == host(h).rack;
      possible += near ? std::min(host(other).out, host(other).in) : 0;
    }
    return flows;
  }

  // Flows from every host of some racks to some of others, the fast ones rather than the slow. Few
  // flows find their rates sooner than many.
  std::vector<Flow> Between(const std::vector<int>& racks, const std::vector<int>& others) {
    std::vector<std::vector<int>> targets;  // by other rack
    for (const int other : others) {
      targets.push_back(hosts_of(static_cast<size_t>(other)));
      std::stable_sort(targets.back().begin(), targets.back().end(),
                       [&](int a, int b) { return host(a).out > host(b).out; });
    }
    std::vector<Flow> flows;
    size_t next = 0;
    for (const int rack : racks) {
      for (const int h : hosts_of(static_cast<size_t>(rack))) {
        for (size_t k = 0; k < kTargetsPerHost; ++k, ++next) {
          const std::vector<int>& here = targets[next % others.size()];
          const int target = here[(next / others.size()) % here.size()];
          if (std::find(flows.begin(), flows.end(), Flow{h, target}) == flows.end()) {
            flows.push_back({h, target});
          }
        }
      }
    }
    return flows;
  }

  static std::vector<Flow> Back(std::vector<Flow> flows) {
    for (Flow& flow : flows) std::swap(flow.from, flow.to);
    return flows;
  }

  static std::vector<Flow> BothWays(std::vector<Flow> flows) {
    const std::vector<Flow> back = Back(flows);
    flows.insert(flows.end(), back.begin(), back.end());
    return flows;
  }

  // What can leave the hosts of some racks, and come in.
  std::pair<Experiments::Capacity, Experiments::Capacity> OutAndIn(const std::vector<int>& racks) {
    const auto inside = [&](int h) {
      return std::find(racks.begin(), racks.end(), host(h).rack) != racks.end();
    };
    const auto outside = [&](int h) { return !inside(h); };
    return {experiments_.CapacityBetween(inside, outside),
            experiments_.CapacityBetween(outside, inside)};
  }

  absl::Status MeasureUplinks() {
    experiments_.Begin("uplinks");
    for (size_t r = 0; r < shape_.racks.size(); ++r) {
      std::vector<int> others;
      for (size_t other = 0; other < shape_.racks.size(); ++other) {
        if (other != r) others.push_back(static_cast<int>(other));
      }
      NetworkShape::Rack& rack = shape_.racks[r];
      const std::vector<Flow> flows = Between({static_cast<int>(r)}, others);
      for (int run = 0; run < kUplinkRunsMax; ++run) {
        if (run > 0 && !experiments_.TimeFor(2 * kLongLength + 4)) break;
        // One way at a time: what the other way carries would delay the answers of this one.
        SYNCOPATE_RETURN_IF_ERROR(experiments_.Rates(flows, kLongLength).status());
        SYNCOPATE_RETURN_IF_ERROR(experiments_.Rates(Back(flows), kLongLength).status());
        const auto [out, in] = OutAndIn({static_cast<int>(r)});
        rack.up = out.rate;
        rack.down = in.rate;
        if (out.sure && in.sure) break;
      }
    }
    return absl::OkStatus();
  }

  // Racks that share a way to the rest are found as racks are: pairs of racks talk at the same
  // time, and a pair that is slower than its two uplinks allow crosses something that is shared.
  absl::Status FindPods() {
    const int racks = static_cast<int>(shape_.racks.size());
    if (racks < 4 || !experiments_.TimeFor(2 * racks)) return absl::OkStatus();
    experiments_.Begin("pods");
    Evidence evidence(racks);
    std::vector<double> up, down;
    for (const NetworkShape::Rack& rack : shape_.racks) {
      up.push_back(kPodSlack * rack.up);
      down.push_back(kPodSlack * rack.down);
    }
    evidence.SetCapacities(up, down);
    for (int round = 0; round < FirstRounds(racks); ++round) {
      const std::vector<std::pair<int, int>> pairs = TournamentRound(racks, round);
      std::vector<Flow> flows;
      std::vector<std::pair<int, int>> ends;  // racks, of each flow
      for (const auto& [a, b] : pairs) {
        const bool more_in_a =
            hosts_of(static_cast<size_t>(a)).size() > hosts_of(static_cast<size_t>(b)).size();
        const int from = more_in_a ? a : b, to = more_in_a ? b : a;
        for (const Flow& flow : BothWays(Between({from}, {to}))) {
          flows.push_back(flow);
          ends.emplace_back(host(flow.from).rack, host(flow.to).rack);
        }
      }
      std::vector<double> best(static_cast<size_t>(racks) * static_cast<size_t>(racks), 0);
      for (int run = 0; run < 2; ++run) {
        SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<double> rates, experiments_.Rates(flows, 1));
        std::vector<double> sums(best.size(), 0);
        for (size_t i = 0; i < rates.size(); ++i) {
          sums[static_cast<size_t>(ends[i].first * racks + ends[i].second)] += rates[i];
        }
        for (size_t i = 0; i < best.size(); ++i) best[i] = std::max(best[i], sums[i]);
      }
      for (const auto& [a, b] : pairs) {
        evidence.Saw(a, b, best[static_cast<size_t>(a * racks + b)]);
        evidence.Saw(b, a, best[static_cast<size_t>(b * racks + a)]);
      }
    }
    const Racks pods = evidence.Cluster();
    const bool every_rack_alone = pods.size() == shape_.racks.size();
    if (pods.size() < 2 || every_rack_alone) return absl::OkStatus();
    // One pair that was disturbed makes no pods: all that are not in one must be apart.
    const std::vector<int> pod_of = RackOf(pods, racks);
    for (int a = 0; a < racks; ++a) {
      for (int b = 0; b < a; ++b) {
        const bool apart = pod_of[static_cast<size_t>(a)] != pod_of[static_cast<size_t>(b)];
        if (apart && evidence.Likeness(a, b) > 0) return absl::OkStatus();
      }
    }
    return MeasurePods(pods);
  }

  absl::Status MeasurePods(const Racks& pods) {
    shape_.pods.clear();
    for (size_t p = 0; p < pods.size(); ++p) {
      NetworkShape::Pod pod;
      pod.name = absl::StrCat("pod", p);
      pod.racks = pods[p];
      std::vector<int> others;
      for (size_t other = 0; other < pods.size(); ++other) {
        if (other != p) others.insert(others.end(), pods[other].begin(), pods[other].end());
      }
      const std::vector<Flow> flows = Between(pod.racks, others);
      SYNCOPATE_RETURN_IF_ERROR(experiments_.Rates(flows, kLongLength).status());
      SYNCOPATE_RETURN_IF_ERROR(experiments_.Rates(Back(flows), kLongLength).status());
      const auto [out, in] = OutAndIn(pod.racks);
      pod.up = out.rate;
      pod.down = in.rate;
      for (const int rack : pod.racks) {
        shape_.racks[static_cast<size_t>(rack)].pod = static_cast<int>(p);
      }
      shape_.pods.push_back(std::move(pod));
    }
    return absl::OkStatus();
  }

  Experiments& experiments_;
  NetworkShape& shape_;
};

NetworkShape ShapeOf(const Experiments& experiments, const FoundRacks& found) {
  NetworkShape shape;
  const std::vector<int> rack_of = RackOf(found.racks, experiments.hosts());
  for (int h = 0; h < experiments.hosts(); ++h) {
    NetworkShape::Host host;
    host.name = experiments.name(h);
    host.workers = experiments.workers(h);
    host.rack = rack_of[static_cast<size_t>(h)];
    if (!found.own_links) {
      host.out = found.evidence.out(h);
      host.in = found.evidence.in(h);
    }
    shape.hosts.push_back(std::move(host));
  }
  NetworkShape::Pod pod;
  pod.name = "pod0";
  for (size_t r = 0; r < found.racks.size(); ++r) {
    NetworkShape::Rack rack;
    rack.name = absl::StrCat("rack", r);
    rack.hosts = found.racks[r];
    shape.racks.push_back(std::move(rack));
    pod.racks.push_back(static_cast<int>(r));
  }
  shape.pods.push_back(std::move(pod));
  return shape;
}

// What each pair achieves, as measured; pairs that were not count as the median of those that were.
void FillLinks(const Evidence& evidence, NetworkShape& shape) {
  const int hosts = evidence.members();
  std::vector<double> seen;
  for (int from = 0; from < hosts; ++from) {
    for (int to = 0; to < hosts; ++to) {
      if (evidence.rate(from, to) > 0) seen.push_back(evidence.rate(from, to));
    }
  }
  const double median = MedianOf(std::move(seen));
  shape.links.assign(static_cast<size_t>(hosts),
                     std::vector<double>(static_cast<size_t>(hosts), 0));
  for (int from = 0; from < hosts; ++from) {
    for (int to = 0; to < hosts; ++to) {
      if (from == to) continue;
      const double rate = evidence.rate(from, to);
      double& link = shape.links[static_cast<size_t>(from)][static_cast<size_t>(to)];
      link = rate > 0 ? rate : median;
      shape.hosts[static_cast<size_t>(from)].out += link;
      shape.hosts[static_cast<size_t>(to)].in += link;
    }
  }
}

// The least latency of some pairs: queues only add to it.
absl::Status MeasureLatencies(Experiments& experiments, NetworkShape& shape) {
  experiments.Begin("latencies");
  double least = std::numeric_limits<double>::infinity();
  for (NetworkShape::Rack& rack : shape.racks) {
    if (rack.hosts.size() < 2) continue;
    SYNCOPATE_ASSIGN_OR_RETURN(rack.latency, experiments.Latency(rack.hosts[0], rack.hosts[1]));
    least = std::min(least, rack.latency);
  }
  double between = std::numeric_limits<double>::infinity();
  for (int i = 0; i < std::min(kLatencyRackPairsMax, static_cast<int>(shape.racks.size()) - 1);
       ++i) {
    const std::vector<int>& a = shape.racks[static_cast<size_t>(i)].hosts;
    const std::vector<int>& b = shape.racks[static_cast<size_t>(i) + 1].hosts;
    SYNCOPATE_ASSIGN_OR_RETURN(const double latency, experiments.Latency(a[0], b[0]));
    between = std::min(between, latency);
  }
  if (shape.racks.size() > 1) shape.latency_between_racks = between;
  for (NetworkShape::Rack& rack : shape.racks) {  // of one host: nobody to ask inside
    if (rack.hosts.size() < 2) rack.latency = std::min(least, between / 2);
  }
  return absl::OkStatus();
}

}  // namespace

double DefaultBudgetSeconds(int hosts) { return 25 * std::max(1.0, hosts / 12.0); }

absl::StatusOr<Inference> InferNetwork(Oracle& oracle, const InferOptions& options) {
  std::set<std::string> names;
  for (int worker = 0; worker < oracle.size(); ++worker) names.insert(oracle.HostOf(worker));
  const int hosts = static_cast<int>(names.size());
  const double budget_seconds =
      options.budget_seconds > 0 ? options.budget_seconds : DefaultBudgetSeconds(hosts);
  Experiments experiments(oracle, budget_seconds, options.progress);
  experiments.SetUnit(std::clamp(0.8 * budget_seconds / (FirstRounds(hosts) + kLaterExperiments),
                                 kUnitSecondsMin, kUnitSecondsMax));
  Inference result;
  SYNCOPATE_ASSIGN_OR_RETURN(FoundRacks found, FindRacks(experiments, options.seed));
  SYNCOPATE_RETURN_IF_ERROR(CheckRackMembers(experiments, found));
  result.shape = ShapeOf(experiments, found);
  if (hosts > 1) {
    if (found.own_links) {
      FillLinks(found.evidence, result.shape);
    } else {
      Capacities capacities(experiments, result.shape);
      SYNCOPATE_RETURN_IF_ERROR(capacities.Measure());
      SYNCOPATE_RETURN_IF_ERROR(capacities.MeasureNics());
    }
    SYNCOPATE_RETURN_IF_ERROR(MeasureLatencies(experiments, result.shape));
  }
  result.experiments = experiments.experiments();
  result.flows = experiments.flows();
  result.seconds = oracle.Elapsed();
  result.complete = found.complete;
  result.disturbance = experiments.disturbance();
  return result;
}

}  // namespace syncopate::probe
