#include "lab/check.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status.h"
#include "lab/forwarding.h"
#include "lab/lab.h"

namespace syncopate::lab {
namespace {

constexpr size_t kSharingFlowsMax = 3;
constexpr size_t kSharedTrialsMax = 8;
// How a pair sends in a trial of sharing, which asks whether the *link* favours anybody. Single
// connections may hold more than their part for a while; which one does is chance. BBR's hold it
// for ten seconds where the queue is long compared to the way, as here, and those that come first
// lose, so that an average would not help.
constexpr int kSharingStreams = 4;
constexpr char kSharingCongestion[] = "cubic";

// Hosts in the order of a walk around the tree of switches: a ring in this order uses each link of
// a tree once in each direction.
void Walk(const Spec& spec, int node, std::vector<bool>& seen, std::vector<int>& order) {
  if (seen[node]) return;
  seen[node] = true;
  if (spec.nodes[node].is_host) {
    order.push_back(node);
    return;
  }
  for (const bool hosts : {true, false}) {
    for (const Link& link : spec.links) {
      if (link.a != node && link.b != node) continue;
      const int other = OtherEnd(link, node);
      if (spec.nodes[other].is_host == hosts) Walk(spec, other, seen, order);
    }
  }
}

std::vector<int> RingOrder(const Spec& spec) {
  std::vector<bool> seen(spec.nodes.size(), false);
  std::vector<int> order;
  for (size_t i = 0; i < spec.nodes.size(); ++i) Walk(spec, static_cast<int>(i), seen, order);
  return order;
}

// (link, direction) on the way of a pair.
std::vector<std::pair<int, int>> WayOf(const Plan& plan, const Pair& pair) {
  std::vector<std::pair<int, int>> way;
  int here = pair.from;
  for (const int link : Path(plan.spec, plan.forwarding, pair.from, pair.to)) {
    way.push_back({link, plan.spec.links[link].a == here ? 0 : 1});
    here = OtherEnd(plan.spec.links[link], here);
  }
  return way;
}

std::string NameOf(const Plan& plan, const Pair& pair) {
  return absl::StrCat(plan.spec.nodes[pair.from].name, " → ", plan.spec.nodes[pair.to].name);
}

Trial MakeTrial(const Plan& plan, const Settings& settings, Trial::Kind kind, std::string what,
                std::vector<Pair> pairs) {
  Trial trial;
  trial.kind = kind;
  trial.what = std::move(what);
  trial.fair = FairRates(plan, settings, pairs);
  trial.pairs = std::move(pairs);
  return trial;
}

// Flows between different hosts that all cross that direction of the link.
std::vector<Pair> Crossing(const Plan& plan, const std::vector<int>& hosts, int link,
                           int direction) {
  std::vector<Pair> pairs;
  std::vector<bool> used(plan.spec.nodes.size(), false);
  for (const int from : hosts) {
    for (const int to : hosts) {
      if (from == to || used[from] || used[to] || pairs.size() == kSharingFlowsMax) continue;
      const std::vector<std::pair<int, int>> way = WayOf(plan, {from, to});
      if (std::find(way.begin(), way.end(), std::pair{link, direction}) == way.end()) continue;
      used[from] = used[to] = true;
      pairs.push_back({from, to});
    }
  }
  return pairs;
}

void AddShared(const Plan& plan, const Settings& settings, const std::vector<int>& hosts,
               std::vector<Trial>& trials) {
  const size_t first = trials.size();
  for (size_t i = 0; i < plan.spec.links.size(); ++i) {
    const Link& link = plan.spec.links[i];
    if (plan.spec.nodes[link.a].is_host || plan.spec.nodes[link.b].is_host) continue;
    for (const int direction : {0, 1}) {
      if (trials.size() - first >= kSharedTrialsMax) break;
      std::vector<Pair> pairs = Crossing(plan, hosts, static_cast<int>(i), direction);
      if (pairs.size() < 2) continue;
      const std::string& from = plan.spec.nodes[direction == 0 ? link.a : link.b].name;
      const std::string& to = plan.spec.nodes[direction == 0 ? link.b : link.a].name;
      std::string what = absl::StrCat(pairs.size(), " flows over ", from, " → ", to);
      trials.push_back(
          MakeTrial(plan, settings, Trial::Kind::kShared, std::move(what), std::move(pairs)));
    }
  }
  if (hosts.size() >= 3) {
    std::vector<Pair> pairs = {{hosts[1], hosts[0]}, {hosts[2], hosts[0]}};
    trials.push_back(MakeTrial(plan, settings, Trial::Kind::kShared,
                               absl::StrCat("2 flows into ", plan.spec.nodes[hosts[0]].name),
                               std::move(pairs)));
  }
}

}  // namespace

std::vector<double> FairRates(const Plan& plan, const Settings& settings,
                              const std::vector<Pair>& pairs) {
  std::vector<std::vector<std::pair<int, int>>> ways;
  for (const Pair& pair : pairs) ways.push_back(WayOf(plan, pair));
  std::vector<double> rates(pairs.size(), 0);
  std::vector<bool> fixed(pairs.size(), false);
  // Filling: the link that gives its flows the least fixes them, then the next.
  while (true) {
    double least = std::numeric_limits<double>::infinity();
    std::pair<int, int> tightest = {-1, 0};
    for (size_t link = 0; link < settings.links.size(); ++link) {
      for (const int direction : {0, 1}) {
        const int64_t rate = settings.links[link][direction].rate;
        if (rate <= 0) continue;
        double left = static_cast<double>(rate) * kPayloadShare;
        int open = 0;
        for (size_t i = 0; i < ways.size(); ++i) {
          const std::pair<int, int> here = {static_cast<int>(link), direction};
          if (std::find(ways[i].begin(), ways[i].end(), here) == ways[i].end()) continue;
          if (fixed[i]) {
            left -= rates[i];
          } else {
            ++open;
          }
        }
        if (open > 0 && left / open < least) {
          least = left / open;
          tightest = {static_cast<int>(link), direction};
        }
      }
    }
    if (tightest.first < 0) return rates;
    for (size_t i = 0; i < ways.size(); ++i) {
      if (fixed[i]) continue;
      if (std::find(ways[i].begin(), ways[i].end(), tightest) == ways[i].end()) continue;
      fixed[i] = true;
      rates[i] = least;
    }
  }
}

std::vector<Trial> PlanTrials(const Plan& plan, const Settings& settings) {
  std::vector<Trial> trials;
  const std::vector<int> hosts = RingOrder(plan.spec);
  std::vector<Pair> ring;
  for (size_t i = 0; i < hosts.size() && hosts.size() > 1; ++i) {
    ring.push_back({hosts[i], hosts[(i + 1) % hosts.size()]});
  }
  for (const Pair& pair : ring) {
    trials.push_back(MakeTrial(plan, settings, Trial::Kind::kSingle, NameOf(plan, pair), {pair}));
  }
  AddShared(plan, settings, hosts, trials);
  if (!ring.empty()) {
    trials.push_back(MakeTrial(plan, settings, Trial::Kind::kAll,
                               absl::StrCat("all ", hosts.size(), " hosts in a ring"), ring));
  }
  return trials;
}

double Asked(const TrialResult& result) {
  double sum = 0;
  for (const double rate : result.trial.fair) {
    if (rate <= 0) return 0;
    sum += rate;
  }
  return sum;
}

double Got(const TrialResult& result) {
  double sum = 0;
  for (const double rate : result.got) sum += rate;
  return sum;
}

double Fairness(const TrialResult& result) {
  double sum = 0;
  double squares = 0;
  for (size_t i = 0; i < result.got.size(); ++i) {
    const double fair = result.trial.fair[i] > 0 ? result.trial.fair[i] : 1;
    sum += result.got[i] / fair;
    squares += result.got[i] / fair * result.got[i] / fair;
  }
  return squares > 0 ? sum * sum / (static_cast<double>(result.got.size()) * squares) : 0;
}

bool Holds(const TrialResult& result) {
  const double asked = Asked(result);
  if (asked <= 0) return true;
  const double share = Got(result) / asked;
  return share > 1 - kRateTolerance && share < 1 + kRateTolerance &&
         Fairness(result) >= kFairnessMin;
}

std::string Verdict(const std::vector<TrialResult>& results) {
  bool single = true;
  bool shared = true;
  bool all = true;
  double all_share = 1;
  for (const TrialResult& result : results) {
    const bool holds = Holds(result);
    switch (result.trial.kind) {
      case Trial::Kind::kSingle:
        single = single && holds;
        break;
      case Trial::Kind::kShared:
        shared = shared && holds;
        break;
      case Trial::Kind::kAll:
        all = all && holds;
        if (Asked(result) > 0) all_share = Got(result) / Asked(result);
        break;
    }
  }
  if (single && shared && all) return "All rates hold.";
  if (single && !all) {
    return absl::StrFormat(
        "CPU limit of this machine: single flows get their rate, all hosts at once %.0f %% of it. "
        "Use lower rates, fewer hosts or a machine with more cores.",
        100 * all_share);
  }
  if (single) return "Single flows get their rate; flows that share a link do not share it well.";
  return "Single flows do not get their rate: the machine is busy with something else, or its CPU "
         "is "
         "too slow for these rates.";
}

absl::StatusOr<std::vector<TrialResult>> RunTrials(
    const Plan& plan, const std::vector<Trial>& trials, double seconds, const Clock& clock,
    const std::function<void(const Trial&, size_t index)>& before, int cancel_fd) {
  std::vector<TrialResult> results;
  for (size_t i = 0; i < trials.size(); ++i) {
    if (before) before(trials[i], i);
    TrialResult result;
    result.trial = trials[i];
    const bool shared = trials[i].kind == Trial::Kind::kShared;
    SYNCOPATE_ASSIGN_OR_RETURN(
        result.got, MeasureFlows(plan, trials[i].pairs, seconds, shared ? kSharingStreams : 1,
                                 shared ? kSharingCongestion : "", clock, cancel_fd));
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace syncopate::lab
