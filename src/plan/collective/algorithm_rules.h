// Rules that name the algorithm of some calls, for experiments: what SYNCOPATE_ALGORITHM holds.
//
//   rules = rule { "," rule }
//   rule  = COLLECTIVE [ ":" FROM "-" [ TO ] ] ":" ALGORITHM
//
// as in allreduce:0-64K:recursive-doubling,broadcast:chain. FROM and TO are bytes of a worker's
// data, FROM included and TO not; without TO there is no end, without a range the rule is for every
// size. The first rule that fits a call wins.
#ifndef SYNCOPATE_PLAN_COLLECTIVE_ALGORITHM_RULES_H_
#define SYNCOPATE_PLAN_COLLECTIVE_ALGORITHM_RULES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "syncopate/collective.h"

namespace syncopate::plan {

// Immutable, so thread-safe.
class AlgorithmRules {
 public:
  AlgorithmRules() = default;  // no rules

  // InvalidArgument with the rule that is wrong, why, and what exists. The algorithms must be
  // registered (plan/collective/planners.h). An empty text has no rules.
  static absl::StatusOr<AlgorithmRules> Parse(absl::string_view text);

  // The algorithm for a call of `bytes` a worker; empty: no rule fits.
  absl::string_view For(Collective collective, uint64_t bytes) const;

  // The shortest way to write them; the same for texts that mean the same rule by rule.
  std::string ToText() const;

 private:
  struct Rule {
    Collective collective = Collective::kAllReduce;
    uint64_t from = 0;
    uint64_t to = UINT64_MAX;
    std::string algorithm;
  };
  static absl::StatusOr<Rule> ParseRule(absl::string_view text);

  std::vector<Rule> rules_;
};

}  // namespace syncopate::plan

#endif  // SYNCOPATE_PLAN_COLLECTIVE_ALGORITHM_RULES_H_
