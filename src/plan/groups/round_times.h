// How long rounds of groups take on a network when they are played: each group runs the collective
// that is best for its members, and the messages of all groups share the links.
#ifndef SYNCOPATE_PLAN_GROUPS_ROUND_TIMES_H_
#define SYNCOPATE_PLAN_GROUPS_ROUND_TIMES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cost/program_cost.h"
#include "model/pattern.h"
#include "model/program.h"
#include "model/topology.h"
#include "plan/groups/group_network.h"

namespace syncopate::plan {

// Up to this many workers rounds are played; beyond, what GroupNetwork says must do.
inline constexpr int kPlayedWorkersMax = 64;

struct PlayedRound {
  double seconds = 0;
  std::vector<std::string> algorithms;  // by group; empty for a worker alone
  std::vector<double> uplink_bytes;     // by uplink, of its busier direction
  cost::ProgramCost cost;               // of the whole round
};

// One program that does what several do at once, each on workers of its own: `programs[i]` has the
// workers `members[i]`, in that order, among `workers`. They must be well-formed and have as many
// elements of data.
Program PlayedTogether(int workers, const std::vector<const Program*>& programs,
                       const std::vector<std::vector<int>>& members);

// Not thread-safe: groups that see the network alike are planned once.
class RoundPlayer {
 public:
  // What is passed must outlive this. `elements`: of a worker's model.
  RoundPlayer(const Topology& topology, absl::Span<const int> placement,
              const GroupNetwork& network, uint64_t elements, size_t bytes_per_element);

  absl::StatusOr<PlayedRound> Play(const Pattern::Round& round);

 private:
  struct Planned {
    Program program;  // of workers 0 .. n-1
    std::string algorithm;
  };

  absl::StatusOr<const Planned*> PlanFor(const Pattern::Group& group);
  // Equal for groups whose members see the same ways among each other, in their order.
  absl::StatusOr<std::string> LooksOf(const std::vector<int>& placement) const;
  std::vector<double> UplinkBytes(const Program& program) const;

  const Topology& topology_;
  const absl::Span<const int> placement_;
  const GroupNetwork& network_;
  const uint64_t elements_;
  const size_t bytes_per_element_;
  absl::flat_hash_map<std::vector<int>, std::string> looks_;  // by group
  absl::flat_hash_map<std::string, Planned> planned_;         // by looks
};

}  // namespace syncopate::plan

#endif  // SYNCOPATE_PLAN_GROUPS_ROUND_TIMES_H_
