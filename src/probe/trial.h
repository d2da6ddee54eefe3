// Trials of the probe: random networks whose shape is known, and how far a found shape is from the
// true one. Tests use it in simulation, `syncopate probe --self-test` in labs.
#ifndef SYNCOPATE_PROBE_TRIAL_H_
#define SYNCOPATE_PROBE_TRIAL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "probe/shape.h"

namespace syncopate::probe {

struct TrialOptions {
  int racks_max = 4;
  int rack_hosts_max = 5;
  double nic = 25e6;       // bytes/s of most hosts, both ways
  bool equal_ways = true;  // uplinks carry as much in as out
};

// 2 to 4 racks of 2 to 5 hosts, uplinks from 1/8 to 1 of a NIC, one host in five at half the rate
// or less. Every rack can fill its uplink, else nobody could tell that it is one. Workers are dealt
// to the hosts in random order, one each.
NetworkShape RandomNetwork(uint64_t seed, const TrialOptions& options);

// What can be seen of a capacity: no more than what the rest of the network can send or take
// through it. `truth` with every capacity cut to that.
NetworkShape Visible(const NetworkShape& truth);

struct Verdict {
  bool racks_right = false;
  int capacities = 0;              // NICs and uplinks, both ways
  int within = 0;                  // of them found within `tolerance`
  std::vector<std::string> wrong;  // those that are not, in words
};

// Hosts are matched by their names.
Verdict Compare(const NetworkShape& truth, const NetworkShape& found, double tolerance = 0.1);

}  // namespace syncopate::probe

#endif  // SYNCOPATE_PROBE_TRIAL_H_
