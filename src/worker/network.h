// The network that a job on several hosts plans for: one that was measured before
// (SYNCOPATE_TOPO_FILE) or, if there is none, a guess.
#ifndef SYNCOPATE_WORKER_NETWORK_H_
#define SYNCOPATE_WORKER_NETWORK_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/environment.h"
#include "model/topology.h"
#include "syncopate/syncopate.h"

namespace syncopate::worker {

struct Network {
  Topology topology;
  std::vector<int> placement;  // by rank: the device that it is on
  bool measured = false;       // its rates are known, not assumed
};

// `hosts` by rank. A file must know every host, or have as many devices as there are workers:
// worker i is then on the i-th. It must be the same for all workers: programs are compared before
// they run.
absl::StatusOr<Network> LoadNetwork(const Environment& environment,
                                    const std::vector<std::string>& hosts);

// The guess: equal NICs around one switch.
Network GuessNetwork(const std::vector<std::string>& hosts);

// The number of the newest version of the network that the job has agreed on, as far as this worker's last
// call knew; nothing: the network is not watched. It costs nothing.
std::optional<uint64_t> WatchedNetworkVersion(const Worker& worker);

// The number of the one that the job began with; nothing: the job is on one host.
std::optional<uint64_t> FirstNetworkVersion(const Worker& worker);

// Where the workers are in `topology`.
absl::StatusOr<std::vector<int>> PlaceByHost(const Topology& topology,
                                             const std::vector<std::string>& hosts);

}  // namespace syncopate::worker

#endif  // SYNCOPATE_WORKER_NETWORK_H_
