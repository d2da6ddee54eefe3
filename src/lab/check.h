// Measures whether a lab holds its rates: single flows, flows that share a link, and all hosts at
// once, which shows the limit of the machine's CPU.
#ifndef SYNCOPATE_LAB_CHECK_H_
#define SYNCOPATE_LAB_CHECK_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "lab/change.h"
#include "lab/flow.h"
#include "lab/plan.h"

namespace syncopate::lab {

inline constexpr double kRateTolerance = 0.05;
inline constexpr double kFairnessMin = 0.8;  // Jain's index; 1 is perfectly fair

// Flows that run at the same time.
struct Trial {
  enum class Kind { kSingle, kShared, kAll };
  Kind kind = Kind::kSingle;
  std::string what;
  std::vector<Pair> pairs;
  // The fair payload rate of each in bit/s; 0 if no link on its route is shaped.
  std::vector<double> fair;
};

struct TrialResult {
  Trial trial;
  std::vector<double> got;  // bit/s of payload
};

// What to measure: each link in both directions alone (hosts in a ring, one after the other), links
// between switches and one NIC shared by several flows, then the whole ring at once.
std::vector<Trial> PlanTrials(const Plan& plan, const Settings& settings);

// Max-min fair payload rates of flows at once; 0 where no link on the way is shaped.
std::vector<double> FairRates(const Plan& plan, const Settings& settings,
                              const std::vector<Pair>& pairs);

double Asked(const TrialResult& result);  // in all, bit/s; 0: not shaped
double Got(const TrialResult& result);
double Fairness(const TrialResult& result);  // of what each got relative to its fair rate
// Within kRateTolerance in all, and fairly shared.
bool Holds(const TrialResult& result);

// One sentence on all of it; begins with "CPU limit of this machine" if single flows hold and all
// at once do not.
std::string Verdict(const std::vector<TrialResult>& results);

// Runs the trials one after the other; `before` is told of each. Cancelled when `cancel_fd` becomes
// readable (-1: never).
absl::StatusOr<std::vector<TrialResult>> RunTrials(
    const Plan& plan, const std::vector<Trial>& trials, double seconds, const Clock& clock,
    const std::function<void(const Trial&, size_t index)>& before, int cancel_fd = -1);

}  // namespace syncopate::lab

#endif  // SYNCOPATE_LAB_CHECK_H_
