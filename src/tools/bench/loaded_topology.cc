#include "tools/bench/loaded_topology.h"

#include <algorithm>
#include <vector>

#include "absl/status/statusor.h"
#include "lab/forwarding.h"
#include "lab/lab.h"

namespace syncopate::tools::bench {
namespace {

// The time of a core to send or receive a message between hosts, with all that the kernel does for
// it.
constexpr double kMessageSeconds = 20e-6;
constexpr double kShareLeft = 0.5;     // of a link, by a flow without a rate
constexpr double kShareLeftMin = 0.1;  // TCP gives others some room, whatever a flow wants

}  // namespace

Topology LoadedTopology(const lab::Spec& spec, int cores) {
  Topology topology = lab::DeclaredTopology(spec);
  const std::vector<int> devices = Devices(topology);
  topology.shared_cores = cores;
  for (const int device : devices) topology.nodes[device].message_overhead = kMessageSeconds;
  const absl::StatusOr<lab::Forwarding> forwarding = lab::ComputeForwarding(spec);
  if (!forwarding.ok()) return topology;  // not valid, so no lab
  for (const lab::BackgroundFlow& flow : spec.flows) {
    int here = flow.from;
    for (const int index : lab::Path(spec, *forwarding, flow.from, flow.to)) {
      const int next = lab::OtherEnd(spec.links[index], here);
      for (Topology::Link& link : topology.links) {
        if (topology.nodes[link.from].id != spec.nodes[here].name ||
            topology.nodes[link.to].id != spec.nodes[next].name) {
          continue;
        }
        double left = kShareLeft;
        if (flow.rate > 0) {
          left = 1 - static_cast<double>(flow.rate) / 8 * lab::kPayloadShare / link.bandwidth;
        }
        link.bandwidth *= std::max(left, kShareLeftMin);
        for (const int capacity : link.capacities) {
          topology.capacities[capacity].bandwidth = link.bandwidth;
        }
        break;
      }
      here = next;
    }
  }
  return topology;
}

std::vector<double> CoreShares(const lab::Spec& spec) {
  std::vector<double> shares;
  for (const lab::Node& node : spec.nodes) {
    if (!node.is_host || node.bystander) continue;
    shares.push_back(node.cores > 0 ? std::min(1.0, node.cores) : 1);
  }
  return shares;
}

}  // namespace syncopate::tools::bench
