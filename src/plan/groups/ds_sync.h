// DS-Sync: divide and shuffle (Wang, Zhang, Yang, Chen, Tan, 2022). Workers average in small groups
// that respect where they stand, and change groups in every round.
//
// In a round every place sends one member up to the place above it, its representative, and those
// who stay average with each other; a place's members are its workers, or what its own places have
// sent up. Representatives take turns. So an uplink carries what one worker sends and receives, and
// a worker is in one group only.
//
// A member behind a slow uplink is kept apart: it averages in a pair with a regular one, its
// partners taking turns, so that what crosses the slow uplink is as little as an average can be
// (once the bytes of the model each way). It goes up for its place only where nobody regular is
// there. docs/ds-sync.md has all rules.
#ifndef SYNCOPATE_PLAN_GROUPS_DS_SYNC_H_
#define SYNCOPATE_PLAN_GROUPS_DS_SYNC_H_

#include <string>

#include "absl/status/statusor.h"
#include "model/pattern.h"
#include "plan/groups/places.h"

namespace syncopate::plan {

inline constexpr char kDsSync[] = "ds-sync";
// The period is at most this, or the number of members of the largest place below the first.
inline constexpr int kDsSyncPeriodMax = 64;

struct DsSyncPlan {
  Pattern pattern;
  // For people, what was chosen where the rules leave a choice: "partners held 4 rounds"; empty:
  // nothing.
  std::string variant;
};

// `root` holds the workers 0 .. N-1, each once; else InvalidArgument. The groups of the pattern
// always join all workers.
absl::StatusOr<DsSyncPlan> PlanDsSync(const Place& root);

}  // namespace syncopate::plan

#endif  // SYNCOPATE_PLAN_GROUPS_DS_SYNC_H_
