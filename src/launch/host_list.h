// The hosts of a job as the user names them, and which ranks run where.
#ifndef SYNCOPATE_LAUNCH_HOST_LIST_H_
#define SYNCOPATE_LAUNCH_HOST_LIST_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace syncopate::launch {

struct HostSlots {
  std::string host;  // a name, an address or user@name
  int slots = 1;

  friend bool operator==(const HostSlots&, const HostSlots&) = default;
};

// "node1:4,node2:4,node3"; an IPv6 address in brackets. A host that is named again gets more slots.
absl::StatusOr<std::vector<HostSlots>> ParseHostList(absl::string_view text);

// A line a host: "node1:4" or, as Open MPI has it, "node1 slots=4" (also "max_slots=", which counts
// for nothing). "#" begins a comment. Errors name the file and the line.
absl::StatusOr<std::vector<HostSlots>> ParseHostFile(absl::string_view path,
                                                     absl::string_view text);

// Ranks first_rank … first_rank + ranks - 1 run on `host`.
struct HostRanks {
  std::string host;
  int first_rank = 0;
  int ranks = 1;

  friend bool operator==(const HostRanks&, const HostRanks&) = default;
};

// Fills host after host; without `ranks` all slots. Hosts that get none are left out.
absl::StatusOr<std::vector<HostRanks>> PlaceRanks(const std::vector<HostSlots>& hosts,
                                                  std::optional<int> ranks);

}  // namespace syncopate::launch

#endif  // SYNCOPATE_LAUNCH_HOST_LIST_H_
