// The shape of a network as the probe found it: hosts, racks and what they share. From it come the
// Topology that planners read and the pictures that people look at.
#ifndef SYNCOPATE_PROBE_SHAPE_H_
#define SYNCOPATE_PROBE_SHAPE_H_

#include <string>
#include <vector>

#include "model/topology.h"

namespace syncopate::probe {

struct NetworkShape {
  struct Host {
    std::string name;
    std::vector<int> workers;
    int rack = 0;
    double out = 0;  // bytes/s of payload that it can send, and receive
    double in = 0;
  };
  struct Rack {
    std::string name;
    std::vector<int> hosts;
    int pod = 0;
    double up = 0;  // bytes/s out of the rack, and into it; of no meaning where there is one rack
    double down = 0;
    double latency = 0;  // seconds between two of its hosts
  };
  // Racks that share a way to the rest. One pod means that there is no such level.
  struct Pod {
    std::string name;
    std::vector<int> racks;
    double up = 0;
    double down = 0;
  };

  std::vector<Host> hosts;  // in the order of their first workers
  std::vector<Rack> racks;
  std::vector<Pod> pods;
  double latency_between_racks = 0;
  // Every pair of hosts has a link of its own: bytes/s by [from][to]. Empty: they share NICs.
  std::vector<std::vector<double>> links;
};

// Worker i is on the i-th device. `group` of a device tells its pod and rack.
Topology ToTopology(const NetworkShape& shape);

}  // namespace syncopate::probe

#endif  // SYNCOPATE_PROBE_SHAPE_H_
