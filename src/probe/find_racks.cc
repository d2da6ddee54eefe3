#include "probe/find_racks.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <utility>

#include "base/random.h"
#include "base/status.h"

namespace syncopate::probe {
namespace {

using Flow = Oracle::Flow;

// How often a round is measured again, at most.
constexpr int kRackRepeatsMax = 2;
// A host whose mean likeness with the hosts of a rack is less than this is not in that rack.
constexpr double kHopeless = -2;
// How often presumed racks are put to the test, and by how many rounds.
constexpr int kAuditsMax = 2;
constexpr int kAuditTurnsMax = 5;
// The weight of rounds inside presumed racks: if one is really two, more of its pairs meet on the
// uplinks between them than in other rounds.
constexpr double kInsideWeight = 3;
// The experiments that must still fit into the budget after those that make racks surer.
constexpr int kReserve = 26;
// The most hosts that one host sends to at once in a fan of flows.
constexpr size_t kFanMax = 6;
// A host that achieves at least this part of what the fastest hosts do is not slow.
constexpr double kFast = 0.93;

struct Round {
  std::vector<Flow> flows;
  // The best of several runs: a disturbance passes, a narrow link stays.
  std::vector<double> rates;
  int repeats = 0;
  double weight = 1;
};

Evidence EvidenceOf(const std::vector<Round>& rounds, int hosts) {
  Evidence evidence(hosts);
  for (const Round& round : rounds) {
    for (size_t i = 0; i < round.flows.size(); ++i) {
      evidence.Saw(round.flows[i].from, round.flows[i].to, round.rates[i], round.weight);
    }
  }
  return evidence;
}

// All hosts in pairs at once, both ways, so that whatever racks share is under load.
absl::StatusOr<std::vector<Round>> PairEverybody(Experiments& experiments, uint64_t seed) {
  Random random(seed);
  const int hosts = experiments.hosts();
  std::vector<int> order(static_cast<size_t>(hosts));
  std::iota(order.begin(), order.end(), 0);
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.Below(i)]);
  std::vector<Round> rounds;
  for (int r = 0; r < FirstRounds(hosts); ++r) {
    Round round;
    for (const auto& [a, b] : TournamentRound(hosts, r)) {
      AddBothWays(round.flows, order[static_cast<size_t>(a)], order[static_cast<size_t>(b)]);
    }
    SYNCOPATE_ASSIGN_OR_RETURN(round.rates, experiments.Rates(round.flows, 1));
    rounds.push_back(std::move(round));
  }
  return rounds;
}

absl::Status Repeat(Experiments& experiments, Round& round) {
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<double> again, experiments.Rates(round.flows, 1));
  for (size_t i = 0; i < again.size(); ++i) round.rates[i] = std::max(round.rates[i], again[i]);
  ++round.repeats;
  return absl::OkStatus();
}

// The rack of each host. A host that stands alone may do so because of some disturbed measurements:
// it counts to the rack that it has most in common with.
std::vector<int> LikelyRackOf(const FoundRacks& found, int hosts) {
  std::vector<int> rack_of = RackOf(found.racks, hosts);
  for (const std::vector<int>& alone : found.racks) {
    if (alone.size() > 1) continue;
    double best = kHopeless;
    for (size_t rack = 0; rack < found.racks.size(); ++rack) {
      if (found.racks[rack].size() < 2) continue;
      const double likeness = found.evidence.LikenessWith(alone[0], found.racks[rack]) /
                              static_cast<double>(found.racks[rack].size());
      if (likeness <= best) continue;
      best = likeness;
      rack_of[static_cast<size_t>(alone[0])] = static_cast<int>(rack);
    }
  }
  return rack_of;
}

// Repeats rounds in which a pair of one presumed rack was slow. False if there is none.
absl::StatusOr<bool> RepeatContradictions(Experiments& experiments, const FoundRacks& found,
                                          std::vector<Round>& rounds) {
  const std::vector<int> rack_of = LikelyRackOf(found, experiments.hosts());
  bool repeated = false;
  for (Round& round : rounds) {
    const bool again = std::any_of(round.flows.begin(), round.flows.end(), [&](const Flow& flow) {
      return rack_of[static_cast<size_t>(flow.from)] == rack_of[static_cast<size_t>(flow.to)] &&
             found.evidence.Likeness(flow.from, flow.to) < 0;
    });
    if (!again || round.repeats == kRackRepeatsMax || !experiments.TimeFor(kReserve)) continue;
    SYNCOPATE_RETURN_IF_ERROR(Repeat(experiments, round));
    repeated = true;
  }
  return repeated;
}

// Pairs from groups of which no pair has been measured yet, each host at most once.
std::vector<Flow> UnmeasuredPairs(const Evidence& evidence, const Racks& racks) {
  std::vector<bool> busy(static_cast<size_t>(evidence.members()), false);
  std::vector<Flow> flows;
  for (size_t a = 0; a < racks.size(); ++a) {
    for (size_t b = a + 1; b < racks.size(); ++b) {
      std::vector<std::pair<int, int>> pairs;
      bool measured = false;
      for (const int x : racks[a]) {
        for (const int y : racks[b]) {
          measured = measured || evidence.Measured(x, y);
          if (!busy[static_cast<size_t>(x)] && !busy[static_cast<size_t>(y)])
            pairs.push_back({x, y});
        }
      }
      if (measured) continue;
      int used = 0;
      for (const auto& [x, y] : pairs) {
        if (busy[static_cast<size_t>(x)] || busy[static_cast<size_t>(y)] || used == 2) continue;
        busy[static_cast<size_t>(x)] = busy[static_cast<size_t>(y)] = true;
        AddBothWays(flows, x, y);
        ++used;
      }
    }
  }
  return flows;
}

// The hosts of each rack in pairs, all racks at once: if one is two, more of its pairs meet on the
// uplinks between them than ever before. `turn` chooses the pairs.
std::vector<Flow> PairInside(const Racks& racks, int turn) {
  std::vector<Flow> flows;
  for (const std::vector<int>& rack : racks) {
    if (rack.size() < 3) continue;  // nothing meets
    for (const auto& [a, b] : TournamentRound(static_cast<int>(rack.size()), turn)) {
      AddBothWays(flows, rack[static_cast<size_t>(a)], rack[static_cast<size_t>(b)]);
    }
  }
  return flows;
}

// A pair of each rack talks while all its other hosts talk with other racks: if one of the pair
// does not belong there, its traffic meets theirs. `turn` chooses the pairs.
std::vector<Flow> Audit(const Racks& racks, int turn, Random& random) {
  std::vector<Flow> flows;
  std::vector<std::pair<uint64_t, std::pair<size_t, int>>> free;  // random, rack, host
  for (size_t r = 0; r < racks.size(); ++r) {
    const size_t size = racks[r].size();
    const size_t first = static_cast<size_t>(turn) % size, second = (first + 1) % size;
    // Of a rack of two, both or none leave it.
    const bool inside = size > 2 || (size == 2 && (static_cast<size_t>(turn) + r) % 2 == 0);
    if (inside) AddBothWays(flows, racks[r][first], racks[r][second]);
    for (size_t i = 0; i < size; ++i) {
      if (inside && (i == first || i == second)) continue;
      free.push_back({random.Next(), {r, racks[r][i]}});
    }
  }
  std::sort(free.begin(), free.end());
  while (!free.empty()) {
    const auto [rack, host] = free.back().second;
    free.pop_back();
    for (size_t i = free.size(); i-- > 0;) {
      if (free[i].second.first == rack) continue;
      AddBothWays(flows, host, free[i].second.second);
      free.erase(free.begin() + static_cast<std::ptrdiff_t>(i));
      break;
    }
  }
  return flows;
}

// The hosts that a host reached at the highest rates, at most kFanMax.
std::vector<int> FastestPeers(const Evidence& evidence, int host) {
  const auto rate = [&](int other) {
    return std::min(evidence.rate(host, other), evidence.rate(other, host));
  };
  std::vector<int> others;
  for (int other = 0; other < evidence.members(); ++other) {
    if (other != host && rate(other) > 0) others.push_back(other);
  }
  std::stable_sort(others.begin(), others.end(), [&](int a, int b) { return rate(a) > rate(b); });
  others.resize(std::min(others.size(), kFanMax));
  return others;
}

// Whether every pair of hosts has a link of its own: then a host that sends to several achieves the
// sum of what it achieves with each. The slowest hosts are asked: on a shared NIC they cannot.
absl::StatusOr<bool> HaveOwnLinks(Experiments& experiments, const Evidence& evidence) {
  const int hosts = experiments.hosts();
  if (hosts < 3) return false;
  std::vector<int> slowest(static_cast<size_t>(hosts));
  std::iota(slowest.begin(), slowest.end(), 0);
  std::stable_sort(slowest.begin(), slowest.end(),
                   [&](int a, int b) { return evidence.out(a) < evidence.out(b); });
  slowest.resize(std::min<size_t>(slowest.size(), hosts >= 6 ? 3 : 2));
  for (const int host : slowest) {
    const std::vector<int> others = FastestPeers(evidence, host);
    std::vector<Flow> flows;
    double sum = 0, best = 0;
    for (const int other : others) {
      flows.push_back({host, other});
      sum += evidence.rate(host, other);
      best = std::max(best, evidence.rate(host, other));
    }
    if (flows.size() < 2) return false;
    SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<double> rates, experiments.Rates(flows, 1));
    const double together = Sum(rates);
    if (together < 0.85 * sum || together > 1.15 * sum || together < 1.5 * best) return false;
  }
  return true;
}

// What NICs carry, as far as pairs do not show it. A fast host whose rack has only slow ones and
// whose uplink is narrow looks slow: all that are slower than others talk with several at once,
// those first with whom they were fastest, so that it is their own NIC that limits them.
absl::Status AskSlowHosts(Experiments& experiments, FoundRacks& found) {
  experiments.Begin("slow hosts");
  const int hosts = experiments.hosts();
  double fastest_out = 0, fastest_in = 0;
  for (int host = 0; host < hosts; ++host) {
    found.out.push_back(found.evidence.out(host));
    found.in.push_back(found.evidence.in(host));
    fastest_out = std::max(fastest_out, found.out.back());
    fastest_in = std::max(fastest_in, found.in.back());
  }
  for (int host = 0; host < hosts && hosts > 2; ++host) {
    double& out = found.out[static_cast<size_t>(host)];
    double& in = found.in[static_cast<size_t>(host)];
    if (out > kFast * fastest_out && in > kFast * fastest_in) continue;
    if (!experiments.TimeFor(kReserve)) break;
    std::vector<Flow> flows;
    for (const int other : FastestPeers(found.evidence, host)) AddBothWays(flows, host, other);
    SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<double> rates, experiments.Rates(flows, 1.5));
    double sent = 0, received = 0;
    for (size_t i = 0; i < rates.size(); ++i) (i % 2 == 0 ? sent : received) += rates[i];
    out = std::max(out, sent);
    in = std::max(in, received);
  }
  return absl::OkStatus();
}

}  // namespace

int FirstRounds(int hosts) {
  if (hosts < 2) return 0;
  const int some = 4 * static_cast<int>(std::ceil(std::log2(static_cast<double>(hosts))));
  return std::min(TournamentRounds(hosts), some);
}

absl::StatusOr<FoundRacks> FindRacks(Experiments& experiments, uint64_t seed) {
  const int hosts = experiments.hosts();
  FoundRacks found(hosts);
  experiments.Begin("pairs of hosts");
  SYNCOPATE_ASSIGN_OR_RETURN(std::vector<Round> rounds, PairEverybody(experiments, seed));
  found.evidence = EvidenceOf(rounds, hosts);
  SYNCOPATE_ASSIGN_OR_RETURN(found.own_links, HaveOwnLinks(experiments, found.evidence));
  if (found.own_links) {
    found.racks.emplace_back(static_cast<size_t>(hosts));
    std::iota(found.racks[0].begin(), found.racks[0].end(), 0);
    return found;
  }
  SYNCOPATE_RETURN_IF_ERROR(AskSlowHosts(experiments, found));
  experiments.Begin("racks");
  Random random(seed);
  int audits = 0;
  Racks audited;
  while (true) {
    found.evidence = EvidenceOf(rounds, hosts);
    found.evidence.SetCapacities(found.out, found.in);
    found.racks = found.evidence.Cluster();
    Round round;
    round.flows = UnmeasuredPairs(found.evidence, found.racks);
    if (!experiments.TimeFor(kReserve)) {
      found.complete = round.flows.empty();
      break;
    }
    if (round.flows.empty()) {
      SYNCOPATE_ASSIGN_OR_RETURN(const bool repeated,
                                 RepeatContradictions(experiments, found, rounds));
      if (repeated) continue;
      if (found.racks.size() < 2 || audits == kAuditsMax || found.racks == audited) break;
      ++audits;
      audited = found.racks;
      size_t largest = 0;
      for (const std::vector<int>& rack : found.racks) largest = std::max(largest, rack.size());
      for (const bool inside : {true, false}) {
        for (int turn = 0; turn < std::min(kAuditTurnsMax, static_cast<int>(largest)); ++turn) {
          if (!experiments.TimeFor(kReserve)) break;
          Round audit;
          audit.flows = inside ? PairInside(found.racks, turn) : Audit(found.racks, turn, random);
          if (inside) audit.weight = kInsideWeight;
          if (audit.flows.empty()) continue;
          SYNCOPATE_ASSIGN_OR_RETURN(audit.rates, experiments.Rates(audit.flows, 1));
          rounds.push_back(std::move(audit));
        }
      }
    } else {
      SYNCOPATE_ASSIGN_OR_RETURN(round.rates, experiments.Rates(round.flows, 1));
      rounds.push_back(std::move(round));
    }
  }
  return found;
}

}  // namespace syncopate::probe
