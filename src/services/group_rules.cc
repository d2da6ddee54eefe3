#include "services/group_rules.h"

#include <cmath>

#include "absl/strings/str_cat.h"

namespace syncopate::services {
namespace {

// Beyond these nobody can tell a number from a slip of the hand.
constexpr int kVirtualWorkersMax = 1 << 20;
constexpr int64_t kLagMax = 1 << 20;

absl::Status Wrong(absl::string_view what, absl::string_view must) {
  return absl::InvalidArgumentError(absl::StrCat("groups: ", what, "; it must be ", must));
}

}  // namespace

absl::StatusOr<GroupRules> GroupRules::ByName(absl::string_view strategy) {
  if (strategy == "prague-smart") return GroupRules{};
  if (strategy == "prague-random") {
    return GroupRules{.buffer = false, .division = false, .inter_intra = false, .lag_max = 0};
  }
  if (strategy == "arrival") {
    return GroupRules{.division = false, .inter_intra = false, .lag_max = 0, .arrival = true};
  }
  return absl::NotFoundError(absl::StrCat("there are no rules for groups named \"", strategy,
                                          "\"; there are prague-smart, prague-random and arrival"));
}

absl::Status Validate(const GroupRules& rules, const GroupJob& job) {
  if (job.workers < 1 || job.workers > kVirtualWorkersMax) {
    return Wrong(absl::StrCat("the job has ", job.workers, " workers"), "from 1 to 1,048,576");
  }
  if (!job.node.empty() && job.node.size() != static_cast<size_t>(job.workers)) {
    return Wrong(absl::StrCat("nodes are given of ", job.node.size(), " workers"),
                 absl::StrCat("all ", job.workers));
  }
  for (const int node : job.node) {
    if (node < 0 || node >= job.workers) {
      return Wrong(absl::StrCat("a node is ", node), "from 0 to the number of workers - 1");
    }
  }
  if (rules.group_size < 2 || rules.group_size > kVirtualWorkersMax) {
    return Wrong(absl::StrCat("the size of groups is ", rules.group_size), "2 or more");
  }
  if (rules.head_group_size < 2 || rules.head_group_size > kVirtualWorkersMax) {
    return Wrong(absl::StrCat("the size of groups of heads is ", rules.head_group_size),
                 "2 or more");
  }
  if (rules.lag_max < 0 || rules.lag_max > kLagMax) {
    return Wrong(absl::StrCat("the lag is ", rules.lag_max), "from 1 to 1,048,576, or 0 for any");
  }
  if (!(rules.slowness_max == 0 || (rules.slowness_max > 1 && std::isfinite(rules.slowness_max)))) {
    return Wrong(absl::StrCat("the slowness is ", rules.slowness_max), "above 1, or 0");
  }
  if (rules.alone_max < 1)
    return Wrong(absl::StrCat("alone_max is ", rules.alone_max), "1 or more");
  if (rules.division && !rules.buffer) {
    return Wrong("there are divisions without the group buffer",
                 "with it, which keeps their groups");
  }
  if (rules.inter_intra && !rules.division) {
    return Wrong("there are two phases without division", "with it");
  }
  if (rules.arrival && (rules.division || !rules.buffer)) {
    return Wrong("groups are of those who ask first, and by division or at every request, too",
                 "one of them");
  }
  return absl::OkStatus();
}

}  // namespace syncopate::services
