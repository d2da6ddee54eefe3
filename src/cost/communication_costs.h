// What an all-reduce costs a group on its network, as schedules are planned by.
//
// Alone, an all-reduce of m bytes takes a + b*m. While k of them move bytes at once, each byte of
// each costs gamma(k)*b; the start-up a is not slowed. gamma[k - 1] is gamma(k), so gamma[0] = 1. A
// network that one all-reduce fills has gamma(k) = k; below k, simultaneous ones get more out of
// it.
#ifndef SYNCOPATE_COST_COMMUNICATION_COSTS_H_
#define SYNCOPATE_COST_COMMUNICATION_COSTS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/digest.h"

namespace syncopate::cost {

struct CommunicationCosts {
  double a = 0;                     // seconds to start up
  double b = 0;                     // seconds a byte
  std::vector<double> gamma = {1};  // factor on b when k transfers move bytes at once
  std::string source;               // free text: "measured", "published"

  // gamma(k), k >= 1. Beyond what was measured the network counts as full: gamma grows with k.
  double Gamma(int k) const;
  // The seconds of an all-reduce of `bytes` that runs alone.
  double Seconds(double bytes) const { return a + b * bytes; }

  friend bool operator==(const CommunicationCosts&, const CommunicationCosts&) = default;
};

// The first fault, with its path as in JSON. Valid costs have a and b that are finite and not
// negative, gamma[0] = 1, and each gamma at least the one before it.
absl::Status Validate(const CommunicationCosts& costs);
inline constexpr double kGammaMax = 1e6;  // a larger one is not valid

// What was measured with noise, made valid: gamma[0] = 1, and a gamma below the one before it is
// raised to that.
CommunicationCosts WithRisingGamma(CommunicationCosts costs);

// The text form, {"a": 0.0014, "b": 1.7e-09, "gamma": [1, 1.5]}. ParseCommunicationCosts(ToJson(c))
// == c for every valid c. Times may be text as "1.4ms"; gamma may be left out.
std::string ToJson(const CommunicationCosts& costs);
absl::StatusOr<CommunicationCosts> ParseCommunicationCosts(absl::string_view json);

// The digest of everything but `source`.
Digest DigestOf(const CommunicationCosts& costs);

}  // namespace syncopate::cost

#endif  // SYNCOPATE_COST_COMMUNICATION_COSTS_H_
