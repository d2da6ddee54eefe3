// Which pattern a network asks for now: which of its uplinks count as slow, and on request a search
// for one that is quicker and mixes no worse.
#ifndef SYNCOPATE_PLAN_GROUPS_CHOOSE_H_
#define SYNCOPATE_PLAN_GROUPS_CHOOSE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "model/pattern.h"
#include "plan/groups/consensus.h"
#include "plan/groups/group_network.h"

namespace syncopate::plan {

// An uplink counts as slow only if keeping it apart makes the slowest round shorter by this part.
inline constexpr double kWorthIsolating = 0.05;

struct GroupCandidate {
  std::string name;  // for people: "nothing kept apart", "device4 in pairs"
  Pattern pattern;
  Consensus consensus;
  std::vector<double> seconds;  // by round, as GroupNetwork has it
  double mean_seconds = 0;
  double longest_seconds = 0;
  std::string against;  // why it was not taken; empty for the winner

  // What an iteration takes, stretched by what disagreement costs.
  double seconds_and_variance() const { return mean_seconds * (1 + consensus.variance); }
};

struct GroupChoice {
  std::vector<GroupCandidate> candidates;  // the winner first, then in the order of trying
  std::string why;                         // in one sentence

  const GroupCandidate& winner() const { return candidates.front(); }
};

// By the rules of DS-Sync (docs/ds-sync.md). `bytes`: of a worker's model.
absl::StatusOr<GroupChoice> ChooseDsSync(const GroupNetwork& network, double bytes);

// Adds to `choice` what a search finds: the pattern of least mean seconds among those whose variance
// is no larger than that of the rules' pattern; never one that is worse in either. It looks at
// averages of all, pairs of gossip, and patterns near the rules' one, `tries` of them.
absl::Status OptimizeGroups(const GroupNetwork& network, double bytes, int tries,
                            GroupChoice& choice);

}  // namespace syncopate::plan

#endif  // SYNCOPATE_PLAN_GROUPS_CHOOSE_H_
