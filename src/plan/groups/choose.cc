#include "plan/groups/choose.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/figures.h"
#include "base/random.h"
#include "base/status.h"
#include "base/units.h"
#include "plan/groups/ds_sync.h"
#include "plan/groups/gossip.h"

namespace syncopate::plan {
namespace {

// Rates that differ less are alike.
constexpr double kRatesAlike = 1.05;
// Where uplinks of one kind have many rates, only the largest steps between them are tried.
constexpr size_t kStepsTriedMax = 3;
constexpr size_t kNamesShownMax = 4;

void TimeRounds(const GroupNetwork& network, double bytes, GroupCandidate& candidate) {
  double sum = 0;
  for (const Pattern::Round& round : candidate.pattern.rounds) {
    candidate.seconds.push_back(network.RoundSeconds(round, bytes));
    sum += candidate.seconds.back();
  }
  candidate.mean_seconds = sum / static_cast<double>(candidate.seconds.size());
  candidate.longest_seconds = *std::max_element(candidate.seconds.begin(), candidate.seconds.end());
}

absl::StatusOr<GroupCandidate> CandidateOf(const GroupNetwork& network, double bytes,
                                           std::string name, Pattern pattern) {
  GroupCandidate candidate;
  candidate.name = std::move(name);
  candidate.pattern = std::move(pattern);
  SYNCOPATE_ASSIGN_OR_RETURN(candidate.consensus, ConsensusOf(candidate.pattern));
  TimeRounds(network, bytes, candidate);
  return candidate;
}

// For each kind of uplink (by depth, workers' apart), the rates from which on they may be slow.
std::vector<std::vector<double>> StepsOf(const GroupNetwork& network) {
  std::map<std::pair<bool, int>, std::vector<double>> rates;
  for (const GroupNetwork::Uplink& uplink : network.uplinks()) {
    // NICs are of one kind, however deep their workers stand.
    rates[{uplink.of_worker, uplink.of_worker ? 0 : uplink.depth}].push_back(
        uplink.seconds_per_byte);
  }
  std::vector<std::vector<double>> steps;
  for (auto& [kind, all] : rates) {
    std::sort(all.begin(), all.end());
    std::vector<std::pair<double, double>> found;  // the step's size, the rate above it
    for (size_t i = 1; i < all.size(); ++i) {
      if (all[i] > all[i - 1] * kRatesAlike) found.push_back({all[i] / all[i - 1], all[i]});
    }
    std::sort(found.rbegin(), found.rend());
    if (found.size() > kStepsTriedMax) found.resize(kStepsTriedMax);
    std::vector<double>& kept = steps.emplace_back();
    for (const auto& [size, rate] : found) kept.push_back(rate);
  }
  return steps;
}

// The sets of uplinks to try as slow, the empty one first.
std::vector<std::vector<bool>> SetsToTry(const GroupNetwork& network) {
  std::vector<std::vector<bool>> sets = {std::vector<bool>(network.uplinks().size(), false)};
  std::map<std::pair<bool, int>, size_t> kinds;
  for (const GroupNetwork::Uplink& uplink : network.uplinks()) {
    kinds[{uplink.of_worker, uplink.of_worker ? 0 : uplink.depth}] = 0;
  }
  size_t number = 0;
  for (auto& [kind, index] : kinds) index = number++;
  const std::vector<std::vector<double>> steps = StepsOf(network);
  for (size_t kind = 0; kind < steps.size(); ++kind) {
    const size_t before = sets.size();
    for (const double step : steps[kind]) {
      for (size_t i = 0; i < before; ++i) {
        std::vector<bool> set = sets[i];
        for (size_t u = 0; u < set.size(); ++u) {
          const GroupNetwork::Uplink& uplink = network.uplinks()[u];
          const size_t its = kinds[{uplink.of_worker, uplink.of_worker ? 0 : uplink.depth}];
          if (its == kind && uplink.seconds_per_byte >= step) set[u] = true;
        }
        sets.push_back(std::move(set));
      }
    }
  }
  return sets;
}

std::string NamesOf(const GroupNetwork& network, const std::vector<bool>& slow) {
  std::vector<std::string> names;
  size_t count = 0;
  for (size_t u = 0; u < slow.size(); ++u) {
    if (slow[u] && ++count <= kNamesShownMax) names.push_back(network.uplinks()[u].name);
  }
  std::string text = absl::StrJoin(names, ", ");
  if (count > kNamesShownMax) absl::StrAppend(&text, " and ", count - kNamesShownMax, " more");
  return text;
}

// Puts the winner first and says of the others why they are not it.
void Decide(GroupChoice& choice) {
  std::vector<GroupCandidate>& all = choice.candidates;
  const GroupCandidate& plain = all.front();
  const double enough = (1 - kWorthIsolating) * plain.longest_seconds;
  size_t best = 0;
  for (size_t i = 1; i < all.size(); ++i) {
    GroupCandidate& candidate = all[i];
    if (candidate.longest_seconds > enough) {
      candidate.against = absl::StrCat(
          "its slowest round takes ", FormatSeconds(candidate.longest_seconds), ", not ",
          Fixed(100 * kWorthIsolating, 0), " % less than with nothing kept apart");
    } else if (candidate.seconds_and_variance() > plain.seconds_and_variance() * (1 + 1e-9)) {
      candidate.against = "its rounds are shorter, but more are needed: seconds times (1 + V) rise";
    } else if (candidate.seconds_and_variance() < all[best].seconds_and_variance() * (1 - 1e-9)) {
      best = i;
    }
  }
  for (size_t i = 0; i < all.size(); ++i) {
    if (i != best && all[i].against.empty()) {
      all[i].against = "seconds times (1 + V) are more than the winner's";
    }
  }
  choice.why =
      best == 0
          ? "no uplink is so slow that keeping it apart is worth it"
          : absl::StrCat("keeping it apart makes the slowest round ",
                         Fixed(100 * (1 - all[best].longest_seconds / plain.longest_seconds), 0),
                         " % shorter, and seconds times (1 + V) do not rise");
  std::rotate(all.begin(), all.begin() + static_cast<int64_t>(best),
              all.begin() + static_cast<int64_t>(best) + 1);
}

// A pattern, what it takes and how it mixes, while a search looks for a better one.
struct Position {
  Pattern pattern;
  double seconds = 0;
  double variance = 0;
};

// Another pattern that differs in one round: a worker moves, two change places, or two groups join.
Pattern WithAChange(const Pattern& pattern, Random& random) {
  Pattern other = pattern;
  Pattern::Round& round = other.rounds[random.Below(other.rounds.size())];
  const size_t a = random.Below(round.size()), b = random.Below(round.size());
  const size_t i = random.Below(round[a].size());
  switch (random.Below(4)) {
    case 0:  // into the other group, or a group of its own
      if (a == b) {
        round.push_back({round[a][i]});
      } else {
        round[b].push_back(round[a][i]);
      }
      round[a].erase(round[a].begin() + static_cast<int64_t>(i));
      break;
    case 1:
      if (a != b) {
        round[b].insert(round[b].end(), round[a].begin(), round[a].end());
        round[a].clear();
      }
      break;
    default:
      std::swap(round[a][i], round[b][random.Below(round[b].size())]);
  }
  Sort(round);
  return other;
}

}  // namespace

absl::StatusOr<GroupChoice> ChooseDsSync(const GroupNetwork& network, double bytes) {
  GroupChoice choice;
  for (const std::vector<bool>& slow : SetsToTry(network)) {
    const std::string names = NamesOf(network, slow);
    for (const bool whole : {false, true}) {
      if (whole && names.empty()) continue;
      SYNCOPATE_ASSIGN_OR_RETURN(DsSyncPlan plan, PlanDsSync(network.PlacesWith(slow, whole)));
      std::string name = names.empty() ? "nothing kept apart"
                                       : absl::StrCat(names, whole ? " not sent up" : " in pairs");
      if (!plan.variant.empty() && !whole) absl::StrAppend(&name, ", ", plan.variant);
      const bool known =
          std::any_of(choice.candidates.begin(), choice.candidates.end(),
                      [&](const GroupCandidate& other) { return other.pattern == plan.pattern; });
      if (known) continue;
      SYNCOPATE_ASSIGN_OR_RETURN(
          GroupCandidate candidate,
          CandidateOf(network, bytes, std::move(name), std::move(plan.pattern)));
      choice.candidates.push_back(std::move(candidate));
    }
  }
  Decide(choice);
  return choice;
}

absl::Status OptimizeGroups(const GroupNetwork& network, double bytes, int tries,
                            GroupChoice& choice) {
  const GroupCandidate rules = choice.winner();
  const int workers = network.workers();
  const auto position = [&](const GroupCandidate& candidate) {
    return Position{candidate.pattern, candidate.mean_seconds, candidate.consensus.variance};
  };
  const double variance_max = rules.consensus.variance * (1 + 1e-9) + 1e-12;
  std::vector<GroupCandidate> others;
  Pattern all{"all", workers, {{{}}}};
  for (int rank = 0; rank < workers; ++rank) all.rounds[0][0].push_back(rank);
  SYNCOPATE_ASSIGN_OR_RETURN(GroupCandidate everybody,
                             CandidateOf(network, bytes, "all in every round", std::move(all)));
  others.push_back(std::move(everybody));
  if (absl::StatusOr<Pattern> pairs = PlanGossipPairs(workers); pairs.ok()) {
    SYNCOPATE_ASSIGN_OR_RETURN(GroupCandidate gossip,
                               CandidateOf(network, bytes, "pairs of gossip", *std::move(pairs)));
    others.push_back(std::move(gossip));
  }
  // From the best of them, step by step to neighbours that are no worse.
  Position best = position(rules);
  for (const GroupCandidate& other : others) {
    if (other.consensus.variance <= variance_max && other.mean_seconds < best.seconds) {
      best = position(other);
    }
  }
  Random random(1);
  for (int i = 0; i < tries; ++i) {
    Position next{WithAChange(best.pattern, random), 0, 0};
    for (const Pattern::Round& round : next.pattern.rounds) {
      next.seconds += network.RoundSeconds(round, bytes) / next.pattern.period();
    }
    if (next.seconds > best.seconds * (1 + 1e-9)) continue;
    if (!CheckConnected(next.pattern).ok()) continue;
    next.variance = VarianceOf(next.pattern);
    const bool quicker = next.seconds < best.seconds * (1 - 1e-9);
    if (next.variance > variance_max || (!quicker && next.variance > best.variance)) continue;
    best = std::move(next);
  }
  best.pattern.planner = "ds-sync-optimized";
  SYNCOPATE_ASSIGN_OR_RETURN(GroupCandidate found, CandidateOf(network, bytes, "found by searching",
                                                               std::move(best.pattern)));
  others.push_back(std::move(found));

  GroupCandidate* winner = nullptr;
  for (GroupCandidate& other : others) {
    if (other.consensus.variance > variance_max) {
      other.against = "V is larger than the rules'";
    } else if (other.mean_seconds > rules.mean_seconds * (1 - 1e-9) &&
               (other.mean_seconds > rules.mean_seconds * (1 + 1e-9) ||
                other.consensus.variance > rules.consensus.variance * (1 - 1e-9))) {
      other.against = "no quicker than the rules'";
    } else if (winner == nullptr || other.mean_seconds < winner->mean_seconds * (1 - 1e-9)) {
      winner = &other;
    }
  }
  for (GroupCandidate& other : others) {
    if (&other != winner && other.against.empty()) other.against = "no quicker than the winner";
  }
  const GroupCandidate* const taken = winner;
  if (taken != nullptr) {
    choice.why = absl::StrCat(
        "of those whose V is no larger than the rules' it has the least mean time, ",
        FormatSeconds(taken->mean_seconds), " instead of ", FormatSeconds(rules.mean_seconds));
    choice.candidates.front().against = "the search found a quicker one";
  }
  for (GroupCandidate& other : others) {
    const auto at = &other == taken ? choice.candidates.begin() : choice.candidates.end();
    choice.candidates.insert(at, std::move(other));
  }
  return absl::OkStatus();
}

}  // namespace syncopate::plan
