// Learns what all-reduces cost from the transfers of a job that runs anyway. Pure functions.
//
// A transfer takes a + gamma(k) * b * m from the moment at which its last member has started it. What
// transfers of few sizes cannot tell keeps the value that it had, and an age: a and b if all have about
// the same size, a if it is small beside the time of the bytes, b if it is the other way round, gamma(k)
// where no k were in flight together.
#ifndef SYNCOPATE_COST_TRANSFER_COSTS_H_
#define SYNCOPATE_COST_TRANSFER_COSTS_H_

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "cost/communication_costs.h"

namespace syncopate::cost {

// One transfer, from its last member's start to its end.
struct TransferTime {
  uint64_t bytes = 0;
  // How many transfers of the job were in flight in that time, itself included: the mean.
  double at_once = 1;
  double seconds = 0;

  friend bool operator==(const TransferTime&, const TransferTime&) = default;
};

// Costs, and when each of them was last told by something that had happened, in seconds of the job.
struct KnownCosts {
  static constexpr double kNever = -std::numeric_limits<double>::infinity();

  CommunicationCosts costs;
  double a_told = kNever;
  double b_told = kNever;
  std::vector<double> gamma_told = {};  // by k - 1; what is missing was never told

  // All of `measured` was told at `now`.
  static KnownCosts Measured(CommunicationCosts measured, double now);
  // Whether a and b, and gamma for up to `at_once`, have been told.
  bool Complete(int at_once) const;
  // Where planners must not be promised anything: gamma(k) that nobody has told, up to `at_once`, is
  // that of a full network.
  CommunicationCosts ForPlanning(int at_once) const;
  // For people: "a 0.4 ms (12 s old), b 1.2 ns (new), ...".
  std::string ToText(double now) const;
};

struct TransferReading {
  KnownCosts known;
  // By how much transfers of some size were slower or quicker than `before` says, as a part of the
  // larger one, less what noise alone may make it. 0: no such difference, or nothing to compare.
  double change = 0;
};

// What `before` becomes by transfers that ended before `now`. Transfers of about the same size, with as
// many at once, count by their median if there are kTransfersLeast of them; others, and those with times
// that are not positive, are left out.
inline constexpr int kTransfersLeast = 3;
TransferReading ReadTransfers(const KnownCosts& before, absl::Span<const TransferTime> transfers,
                              double now);

}  // namespace syncopate::cost

#endif  // SYNCOPATE_COST_TRANSFER_COSTS_H_
