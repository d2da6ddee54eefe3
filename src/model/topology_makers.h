// Topologies that come up again and again, made from a few numbers.
//
// Devices are called "device0", "device1", ...; worker i is meant to be on the i-th. Latencies are
// those of a whole way between two devices unless a comment says otherwise. The results are valid
// for counts of at least 1 and positive finite rates.
#ifndef SYNCOPATE_MODEL_TOPOLOGY_MAKERS_H_
#define SYNCOPATE_MODEL_TOPOLOGY_MAKERS_H_

#include <cstdint>

#include "absl/types/span.h"
#include "model/topology.h"

namespace syncopate {

// What synchronizing costs among processes of one machine. The defaults are those of a small
// server.
struct HostCosts {
  int cores = 2;
  // Bytes/s read and written by all cores together: in general, and for data that stays in the
  // cache of `cache_bytes`.
  double memory_bandwidth = 36e9;
  double cached_bandwidth = 100e9;
  uint64_t cache_bytes = uint64_t{24} << 20;
  // Seconds until a waiting worker sees a flag, if it has a core of its own.
  double handover = 0.3e-6;
  // If cores are oversubscribed, the worker must be given a core first. It then takes this many
  // seconds for each worker that a core has to serve.
  double handover_oversubscribed = 3e-6;
  double message_overhead = 0.05e-6;  // seconds of a worker's time for each message, each way
};

// Seconds until a flag that one worker sets is seen by another, with that many workers.
double HandoverSeconds(const HostCosts& costs, int workers);

// One machine: the devices hand over through its memory, which all share.
Topology SingleHostTopology(int workers, const HostCosts& costs);

// Devices around one switch; each has a NIC that carries `bandwidth` in each direction.
Topology StarTopology(int devices, double bandwidth, double latency);

// Every ordered pair of devices has its own link.
Topology MeshTopology(int devices, double bandwidth, double latency);

// Two racks, each a star as above, joined by an uplink of `uplink_bandwidth` in each direction. A
// way between racks has twice the latency of one inside.
Topology TwoRackTopology(int devices_per_rack, double nic_bandwidth, double uplink_bandwidth,
                         double latency);

// Switches below switches, devices below the last: `fanout` {8, 4, 16} is 8 pods of 4 racks of 16
// devices. `rates` has an entry for each level too: the bandwidth of the uplink of a pod, of the
// uplink of a rack and of a NIC, in each direction. The bandwidth of each link is multiplied
// by a random number between 1 - spread and 1 + spread (spread < 1; 0: equal rates). A route to a
// neighbour has `latency`, one further up proportionally more.
Topology SwitchTreeTopology(absl::Span<const int> fanout, absl::Span<const double> rates,
                            double latency, double spread, uint64_t seed);

// Some valid topology of that many devices, for tests: stars, meshes, trees of switches, several
// devices a host, uneven rates, half-duplex NICs. The same seed gives the same one.
Topology RandomTopology(int devices, uint64_t seed);

}  // namespace syncopate

#endif  // SYNCOPATE_MODEL_TOPOLOGY_MAKERS_H_
