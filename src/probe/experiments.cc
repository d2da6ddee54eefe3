#include "probe/experiments.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/log.h"
#include "base/status.h"

namespace syncopate::probe {
namespace {

// If a short experiment was faster than all long ones by this factor, the long ones perhaps did not
// fill what limits them.
constexpr double kFaster = 1.05;
// At least this part of the second best short experiment is real: a single one may be an accident,
// but two of them are not off by more.
constexpr double kSurely = 0.85;
// From this length on an experiment is long.
constexpr double kLong = 2;
// An experiment is disturbed if a host lost more than this part of its processor time. With 10 %
// and more, flows achieve noticeably less.
constexpr double kStolenMax = 0.08;
// How often a disturbed experiment is repeated.
constexpr int kRepeatsMax = 3;
// The wait before the first repeat, as a part of the budget. It doubles with each repeat, up to
// kWaitSecondsMax, which is far less than workers wait for an instruction.
constexpr double kWaitPart = 0.02;
constexpr double kWaitSecondsMax = 5;
// All repeats together take no more than this part of the budget: the rest of the probe needs its
// time, too.
constexpr double kRepeatingPart = 0.25;

}  // namespace

std::vector<int> RackOf(const Racks& racks, int hosts) {
  std::vector<int> rack_of(static_cast<size_t>(hosts), -1);
  for (size_t rack = 0; rack < racks.size(); ++rack) {
    for (const int host : racks[rack]) {
      rack_of[static_cast<size_t>(host)] = static_cast<int>(rack);
    }
  }
  return rack_of;
}

int TournamentRounds(int members) { return members < 2 ? 0 : members - 1 + members % 2; }

std::vector<std::pair<int, int>> TournamentRound(int members, int round) {
  // One member stays and the others move around it in a circle. If their number is odd, the place
  // that stays is empty, and its partner has no match in the round.
  const int circle = TournamentRounds(members);
  std::vector<std::pair<int, int>> pairs;
  if (members % 2 == 0) pairs.emplace_back(members - 1, round % circle);
  for (int i = 1; i <= circle / 2; ++i) {
    pairs.emplace_back((round + i) % circle, (round - i + circle) % circle);
  }
  return pairs;
}

Experiments::Experiments(Oracle& oracle, double budget_seconds, Progress progress)
    : oracle_(oracle), budget_seconds_(budget_seconds), progress_(std::move(progress)) {
  std::map<std::string, size_t> known;
  for (int worker = 0; worker < oracle.size(); ++worker) {
    const std::string name = oracle.HostOf(worker);
    const auto [found, added] = known.try_emplace(name, hosts_.size());
    if (added) hosts_.emplace_back(name, std::vector<int>());
    hosts_[found->second].second.push_back(worker);
  }
}

absl::StatusOr<std::vector<double>> Experiments::Rates(absl::Span<const Flow> flows,
                                                       double length) {
  if (flows.empty()) return std::vector<double>();
  Log(LogLevel::kTrace, "step ", step_);
  if (progress_) progress_(step_, std::min(1.0, oracle_.Elapsed() / budget_seconds_));
  std::vector<double> kept;
  int host = 0;
  double stolen = 0;  // from it, in the measurement that was kept
  for (int repeats = 0;; ++repeats) {
    const double began = oracle_.Elapsed();
    if (repeats > 0) {
      oracle_.Wait(WaitSeconds(repeats));
      planned_seconds_ += WaitSeconds(repeats);
    }
    SYNCOPATE_ASSIGN_OR_RETURN(std::vector<double> rates, Measure(flows, length));
    if (repeats > 0) repeating_seconds_ += oracle_.Elapsed() - began;
    const int loser = MostStolen(flows);
    if (repeats == 0 || Stolen(loser) < stolen) {
      kept = std::move(rates);
      host = loser;
      stolen = Stolen(loser);
    }
    if (stolen <= kStolenMax || repeats == kRepeatsMax || !TimeToRepeat(repeats + 1, length)) {
      break;
    }
    Log(LogLevel::kTrace, "disturbed: ", name(host), " lost ", stolen, " of its processor time");
  }
  if (stolen > kStolenMax) {
    ++disturbance_.experiments;
    if (stolen > disturbance_.stolen) {
      disturbance_.host = name(host);
      disturbance_.stolen = stolen;
    }
  }
  past_.push_back({std::vector<Flow>(flows.begin(), flows.end()), kept, length});
  return kept;
}

absl::StatusOr<std::vector<double>> Experiments::Measure(absl::Span<const Flow> flows,
                                                         double length) {
  std::vector<Flow> between_workers;
  for (const Flow& flow : flows) {
    between_workers.push_back({workers(flow.from).front(), workers(flow.to).front()});
  }
  ++experiments_;
  flows_ += static_cast<int>(flows.size());
  planned_seconds_ += length * unit_seconds_;
  SYNCOPATE_ASSIGN_OR_RETURN(std::vector<double> rates,
                             oracle_.Rates(between_workers, length * unit_seconds_));
  if (rates.size() != flows.size()) {
    return absl::InternalError(absl::StrCat("asked for ", flows.size(), " rates and got ",
                                            rates.size(), "; this is a mistake in the probe"));
  }
  return rates;
}

int Experiments::MostStolen(absl::Span<const Flow> flows) const {
  int most = flows.front().from;
  for (const Flow& flow : flows) {
    for (const int host : {flow.from, flow.to}) {
      if (Stolen(host) > Stolen(most)) most = host;
    }
  }
  return most;
}

double Experiments::WaitSeconds(int repeat) const {
  return std::min(kWaitSecondsMax, kWaitPart * budget_seconds_ * (1 << (repeat - 1)));
}

bool Experiments::TimeToRepeat(int repeat, double length) const {
  const double seconds = WaitSeconds(repeat) + length * unit_seconds_ + ExtraSeconds();
  return repeating_seconds_ + seconds <= kRepeatingPart * budget_seconds_ &&
         oracle_.Elapsed() + seconds <= budget_seconds_;
}

Experiments::Capacity Experiments::CapacityBetween(
    const std::function<bool(int host)>& is_from,
    const std::function<bool(int host)>& is_to) const {
  std::vector<double> sums;  // of short ones
  double most_in_long = 0;
  for (const Past& past : past_) {
    double sum = 0;
    for (size_t i = 0; i < past.flows.size(); ++i) {
      if (is_from(past.flows[i].from) && is_to(past.flows[i].to)) sum += past.rates[i];
    }
    if (past.length >= kLong) {
      most_in_long = std::max(most_in_long, sum);
    } else {
      sums.push_back(sum);
    }
  }
  std::sort(sums.begin(), sums.end(), std::greater<>());
  sums.resize(std::max<size_t>(2, sums.size()), 0);
  const bool sure = sums[0] < kFaster * most_in_long;
  if (LogEnabled(LogLevel::kTrace)) {
    LogLine(LogLevel::kTrace,
            absl::StrFormat("capacity %s, MB/s: %.2f in long experiments, in short ones %.2f %.2f",
                            sure ? "sure" : "unsure", most_in_long * 1e-6, sums[0] * 1e-6,
                            sums[1] * 1e-6));
  }
  // The best short experiment may be an accident. So may the second best, but not by more than
  // kSurely.
  return {.rate = std::max(most_in_long, kSurely * sums[1]), .sure = sure};
}

absl::StatusOr<double> Experiments::Latency(int from, int to) {
  return oracle_.Latency(workers(from).front(), workers(to).front());
}

bool Experiments::TimeFor(int experiments) const {
  return oracle_.Elapsed() + experiments * (unit_seconds_ + ExtraSeconds()) <= budget_seconds_;
}

double Experiments::ExtraSeconds() const {
  if (experiments_ == 0) return 0;
  return std::max(0.0, (oracle_.Elapsed() - planned_seconds_) / experiments_);
}

void AddBothWays(std::vector<Oracle::Flow>& flows, int a, int b) {
  flows.push_back({a, b});
  flows.push_back({b, a});
}

double Sum(absl::Span<const double> rates) {
  return std::accumulate(rates.begin(), rates.end(), 0.0);
}

}  // namespace syncopate::probe
