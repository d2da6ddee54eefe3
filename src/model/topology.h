// The network and the machines on it, as planners, the cost model and the simulator see them.
//
// A Topology is a value: nodes, directed links between them, capacities that several links share,
// and optionally the routes that messages take. It serves both kinds of network:
//   - every pair of machines has its own capacity: one link per ordered pair;
//   - machines share NICs and uplinks behind switches: links through a switch that draw on
//     capacities.
// Elements refer to one another by index into the vectors here, by id in JSON. docs/topology.md has
// the JSON form, a worked example and what every number means.
#ifndef SYNCOPATE_MODEL_TOPOLOGY_H_
#define SYNCOPATE_MODEL_TOPOLOGY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/digest.h"

namespace syncopate {

enum class NodeKind : uint8_t {
  kDevice,  // where a worker can be: a process, a GPU
  kHost,    // a machine that holds devices
  kSwitch,  // passes messages on; it can neither add nor hold data
};
absl::string_view Name(NodeKind kind);  // "device", "host", "switch"

struct Topology {
  // A rate that everything which draws on it shares: a NIC, an uplink, a memory bus.
  struct Capacity {
    std::string id;
    double bandwidth = 0;  // bytes/s
    // Memory with a cache before it: while all that the workers on it hold fits into `cache_bytes`,
    // the bandwidth is this one. 0: no cache.
    double cached_bandwidth = 0;
    uint64_t cache_bytes = 0;

    friend bool operator==(const Capacity&, const Capacity&) = default;
  };

  struct Node {
    std::string id;
    NodeKind kind = NodeKind::kDevice;
    int host = -1;      // devices only: the node of the machine that holds it, or -1
    std::string group;  // free path of where it stands: "pod1/rack3"
    // Capacities that memory traffic here draws on. A device that names none uses its host's. None
    // at all: copying and adding cost nothing.
    std::vector<int> memory;
    // Devices: seconds of the device's own time for each message, each way.
    double message_overhead = 0;

    friend bool operator==(const Node&, const Node&) = default;
  };

  struct Link {
    std::string id;
    int from = -1;  // nodes
    int to = -1;
    double bandwidth = 0;         // bytes/s
    double latency = 0;           // seconds
    std::vector<int> capacities;  // shared ones that it draws on, besides its own bandwidth

    friend bool operator==(const Link&, const Link&) = default;
  };

  // The way that messages from device `from` to device `to` take. Pairs without one use the
  // computed route (model/topology_routes.h).
  struct Route {
    int from = -1;
    int to = -1;
    std::vector<int> links;

    friend bool operator==(const Route&, const Route&) = default;
  };

  uint64_t version = 0;  // a newer measurement of the same network has a higher one
  std::string source;    // free text: "measured", "declared"
  // Where an emulated network runs on one machine: the cores that the own time of all devices comes
  // from together. 0: every device has one for itself.
  double shared_cores = 0;
  std::vector<Node> nodes;
  std::vector<Capacity> capacities;
  std::vector<Link> links;
  std::vector<Route> routes;

  friend bool operator==(const Topology&, const Topology&) = default;
};

// The first fault, with its path as in JSON: "links[3].bandwidth: -1 is not a positive finite
// number". A valid topology has at least one device, unique ids, references that exist, positive
// finite rates, routes that lead where they say, and a route between any two devices.
absl::Status Validate(const Topology& topology);

// The text form. ParseTopology(ToJson(t)) == t for every valid t. ParseTopology validates and
// refuses unknown and repeated keys.
std::string ToJson(const Topology& topology);
absl::StatusOr<Topology> ParseTopology(absl::string_view json);

// The digest of everything but `source`.
Digest DigestOf(const Topology& topology);

// The nodes that are devices, in order.
std::vector<int> Devices(const Topology& topology);
// The node with this id, or NotFound.
absl::StatusOr<int> FindNode(const Topology& topology, absl::string_view id);
// Worker i on the i-th device. FailedPrecondition if there are fewer devices than workers.
absl::StatusOr<std::vector<int>> PlaceInOrder(const Topology& topology, int workers);
// The capacities that memory traffic of a device draws on: its own, else its host's.
const std::vector<int>& MemoryOf(const Topology& topology, int device);

}  // namespace syncopate

#endif  // SYNCOPATE_MODEL_TOPOLOGY_H_
