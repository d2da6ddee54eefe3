// Fits the costs that schedules are planned by to measured all-reduces. Pure functions.
#ifndef SYNCOPATE_COST_COST_FIT_H_
#define SYNCOPATE_COST_COST_FIT_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cost/communication_costs.h"

namespace syncopate::cost {

// `at_once` all-reduces of `bytes` each were started together; the last of them had ended on the
// slowest worker after `seconds`.
struct CostPoint {
  uint64_t bytes = 0;
  int at_once = 1;
  double seconds = 0;

  friend bool operator==(const CostPoint&, const CostPoint&) = default;
};

struct CostFit {
  CommunicationCosts costs;
  std::vector<CostPoint> points;
  std::vector<double> fitted;  // seconds, by point

  // By how much the measured time is above the fitted one, as a part of that.
  double Residual(size_t point) const { return points[point].seconds / fitted[point] - 1; }
  double ResidualMax() const;  // the largest, without its sign
};

// a and b from the points that went alone: the line whose relative errors are smallest, so that
// small sizes fix a and large ones b; points far off it count less. gamma(k) from those with k at
// once, again by relative errors, of sizes whose bytes take four times the start-up if there are
// any; a k without points lies between its neighbours. a is at least half of the shortest time, b
// is not negative, gamma(k) rises with k.
//
// InvalidArgument without two sizes that went alone, or with a time that is not positive.
absl::StatusOr<CostFit> FitCosts(absl::Span<const CostPoint> points);

}  // namespace syncopate::cost

#endif  // SYNCOPATE_COST_COST_FIT_H_
