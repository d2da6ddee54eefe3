// Runs experiments among hosts and keeps account of time: what the steps of the inference share.
#ifndef SYNCOPATE_PROBE_EXPERIMENTS_H_
#define SYNCOPATE_PROBE_EXPERIMENTS_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "probe/disturbance.h"
#include "probe/oracle.h"

namespace syncopate::probe {

// Groups of hosts.
using Racks = std::vector<std::vector<int>>;

// The rack of each host.
std::vector<int> RackOf(const Racks& racks, int hosts);

// Round `round` of a tournament in which everybody meets everybody once: disjoint pairs, one member
// left over if their number is odd. There are TournamentRounds(members) of them.
std::vector<std::pair<int, int>> TournamentRound(int members, int round);
int TournamentRounds(int members);

// Not thread-safe.
class Experiments {
 public:
  using Flow = Oracle::Flow;  // between hosts, not workers
  using Progress = std::function<void(absl::string_view step, double part)>;

  Experiments(Oracle& oracle, double budget_seconds, Progress progress);

  int hosts() const { return static_cast<int>(hosts_.size()); }
  const std::string& name(int host) const { return hosts_[static_cast<size_t>(host)].first; }
  const std::vector<int>& workers(int host) const {
    return hosts_[static_cast<size_t>(host)].second;
  }

  // Names what the following experiments are for.
  void Begin(absl::string_view step) { step_ = std::string(step); }
  // How long an experiment of length 1 takes.
  void SetUnit(double seconds) { unit_seconds_ = seconds; }

  // What each flow achieves while all run. Flows leave from and go to the first worker of a host.
  // If much processor time was stolen from a host that takes part, it waits a little and measures
  // again, some times, while it has time for that; the least disturbed measurement counts.
  absl::StatusOr<std::vector<double>> Rates(absl::Span<const Flow> flows, double length);
  absl::StatusOr<double> Latency(int from, int to);

  // Whether there is time for this many experiments of length 1.
  bool TimeFor(int experiments) const;

  // What can go at once from hosts of which `is_from` holds to hosts of which `is_to` does, by all
  // experiments so far. A long one is better than a short one, which is a few percent off both
  // ways, unless it did not fill what limits it: then short ones were faster.
  struct Capacity {
    double rate = 0;    // bytes/s
    bool sure = false;  // no short experiment was faster than the long ones
  };
  Capacity CapacityBetween(const std::function<bool(int host)>& is_from,
                           const std::function<bool(int host)>& is_to) const;

  int experiments() const { return experiments_; }
  int flows() const { return flows_; }
  const Disturbance& disturbance() const { return disturbance_; }

 private:
  struct Past {
    std::vector<Flow> flows;
    std::vector<double> rates;
    double length = 1;
  };

  // Measures once.
  absl::StatusOr<std::vector<double>> Measure(absl::Span<const Flow> flows, double length);
  // The host of these flows that lost most in the last measurement.
  int MostStolen(absl::Span<const Flow> flows) const;
  // How long it waits before repeat 1, 2 and so on of an experiment.
  double WaitSeconds(int repeat) const;
  bool TimeToRepeat(int repeat, double length) const;
  // What an experiment takes besides its length, as the mean so far.
  double ExtraSeconds() const;
  double Stolen(int host) const { return oracle_.Stolen(workers(host).front()); }

  Oracle& oracle_;
  const double budget_seconds_;
  const Progress progress_;
  std::vector<std::pair<std::string, std::vector<int>>> hosts_;  // name, workers
  std::string step_;
  double unit_seconds_ = 0.2;
  int experiments_ = 0;
  int flows_ = 0;
  std::vector<Past> past_;
  double planned_seconds_ = 0;    // lengths of all experiments so far, and of waits
  double repeating_seconds_ = 0;  // what disturbed ones have cost, with the waits before them
  Disturbance disturbance_;
};

// Both directions of a pair.
void AddBothWays(std::vector<Oracle::Flow>& flows, int a, int b);
double Sum(absl::Span<const double> rates);

}  // namespace syncopate::probe

#endif  // SYNCOPATE_PROBE_EXPERIMENTS_H_
