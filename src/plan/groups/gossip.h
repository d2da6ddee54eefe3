// Gossip in pairs: in round k worker i averages with worker i XOR 2^k, so after log2 N rounds all
// of N workers hold the mean of all.
//
// It stands for the one-peer exponential graph (worker i sends to i + 2^k and takes from i - 2^k,
// weights 1/2), which moves as many bytes and agrees as quickly, but whose transfers are not
// groups: those are directed, and only where both ends are the same worker are they a pair.
#ifndef SYNCOPATE_PLAN_GROUPS_GOSSIP_H_
#define SYNCOPATE_PLAN_GROUPS_GOSSIP_H_

#include "absl/status/statusor.h"
#include "model/pattern.h"

namespace syncopate::plan {

inline constexpr char kGossip[] = "gossip";

// InvalidArgument where the number of workers is not a power of two, or too large.
absl::StatusOr<Pattern> PlanGossipPairs(int workers);

}  // namespace syncopate::plan

#endif  // SYNCOPATE_PLAN_GROUPS_GOSSIP_H_
