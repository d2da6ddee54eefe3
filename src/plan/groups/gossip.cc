#include "plan/groups/gossip.h"

#include "absl/strings/str_cat.h"
#include "base/limits.h"

namespace syncopate::plan {

absl::StatusOr<Pattern> PlanGossipPairs(int workers) {
  if (workers < 1 || workers > limits::kWorkersMax || (workers & (workers - 1)) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("gossip in pairs needs a power of two up to ",
                                                   limits::kWorkersMax, " workers; there are ",
                                                   workers));
  }
  Pattern pattern{kGossip, workers, {}};
  if (workers == 1) pattern.rounds = {{{0}}};
  for (int step = 1; step < workers; step *= 2) {
    Pattern::Round& round = pattern.rounds.emplace_back();
    for (int i = 0; i < workers; ++i) {
      if ((i & step) == 0) round.push_back({i, i | step});
    }
  }
  return pattern;
}

}  // namespace syncopate::plan
