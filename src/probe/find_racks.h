// Which hosts stand in one rack. The first half of the inference.
#ifndef SYNCOPATE_PROBE_FIND_RACKS_H_
#define SYNCOPATE_PROBE_FIND_RACKS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "probe/evidence.h"
#include "probe/experiments.h"

namespace syncopate::probe {

struct FoundRacks {
  explicit FoundRacks(int hosts) : evidence(hosts) {}

  Racks racks;
  Evidence evidence;            // of pairs of hosts
  std::vector<double> out, in;  // about what the NICs carry, bytes/s; not with own links
  bool own_links = false;       // every pair of hosts has a link of its own; then `racks` is one
  bool complete = true;         // false: the time did not suffice to be sure
};

// How many rounds of pairs the first look takes: all for some ten hosts, then only some more for
// twice as many hosts.
int FirstRounds(int hosts);

absl::StatusOr<FoundRacks> FindRacks(Experiments& experiments, uint64_t seed);

// Moves hosts that could as well stand in another rack to where tests made for the question put
// them (probe/rack_tests.cc).
absl::Status CheckRackMembers(Experiments& experiments, FoundRacks& found);

}  // namespace syncopate::probe

#endif  // SYNCOPATE_PROBE_FIND_RACKS_H_
