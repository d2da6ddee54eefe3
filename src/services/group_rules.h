// By which rules the group generator forms groups (group_maker.h). Each mechanism of Prague is a switch, so
// that its part in the whole can be measured.
#ifndef SYNCOPATE_SERVICES_GROUP_RULES_H_
#define SYNCOPATE_SERVICES_GROUP_RULES_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace syncopate::services {

struct GroupRules {
  int group_size = 3;
  // A request takes the first group that its worker is in already; only who is in none makes new ones. Without it
  // every request makes a group, and a worker goes on when it has been through all that it is in.
  bool buffer = true;
  // Who is in none makes groups of all that are in none; else one group, with any others.
  bool division = true;
  // A division makes two groups a worker: heads of the nodes among each other while the others group inside their
  // node, then each node.
  bool inter_intra = true;
  int head_group_size = 4;
  // How many requests a worker may be behind the one that makes groups, and still be in one of them: less than
  // this; 0: any number.
  int64_t lag_max = 4;
  // Instead of by requests: a worker that computes this many times as long as the one that makes groups is left
  // out; 0: by requests.
  double slowness_max = 0;
  // A worker that found nobody so many times in a row takes workers into its next groups whatever they lag.
  int alone_max = 4;
  // Only workers that have asked, or by their usual time will within the time that an average takes.
  bool aware = false;
  // Instead of all this: the first `group_size` that ask.
  bool arrival = false;

  // What the strategies of these names use: "prague-random", "prague-smart", "arrival".
  static absl::StatusOr<GroupRules> ByName(absl::string_view strategy);

  friend bool operator==(const GroupRules&, const GroupRules&) = default;
};

// The job in which groups are formed.
struct GroupJob {
  int workers = 1;
  std::vector<int> node = {};  // by rank, from 0; empty: all on one
  uint64_t seed = 0;
  uint64_t samples_end = 0;  // the job ends when so many were computed; 0: it does not end by them
};

absl::Status Validate(const GroupRules& rules, const GroupJob& job);

}  // namespace syncopate::services

#endif  // SYNCOPATE_SERVICES_GROUP_RULES_H_
