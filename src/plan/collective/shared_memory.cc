#include "plan/collective/shared_memory.h"

#include <algorithm>
#include <vector>

#include "absl/status/statusor.h"
#include "model/topology_routes.h"

namespace syncopate::plan {

double SharedMemory::Seconds(double traffic, double touched) const {
  const bool cached = cache_bytes > 0 && touched <= static_cast<double>(cache_bytes);
  return traffic / (cached ? cached_bandwidth : bandwidth);
}

SharedMemory MemoryOfHost(const HostCosts& costs, int workers) {
  return {HandoverSeconds(costs, workers), costs.memory_bandwidth, costs.cached_bandwidth,
          costs.cache_bytes};
}

std::optional<SharedMemory> FindSharedMemory(const CollectiveRequest& request,
                                             const Topology& topology,
                                             absl::Span<const int> placement) {
  SharedMemory memory;
  Routes routes(topology);
  const int first = placement[request.active[0]];
  for (const int worker : request.active) {
    const Topology::Node& device = topology.nodes[placement[worker]];
    if (device.host < 0 || device.host != topology.nodes[first].host) return std::nullopt;
    for (const bool back : {false, true}) {
      const absl::StatusOr<std::vector<int>> route = back
                                                         ? routes.Between(placement[worker], first)
                                                         : routes.Between(first, placement[worker]);
      if (!route.ok()) return std::nullopt;
      double latency = 0;
      for (const int link : *route) latency += topology.links[link].latency;
      memory.handover = std::max(memory.handover, latency);
    }
  }
  const std::vector<int>& capacities = topology.nodes[topology.nodes[first].host].memory;
  if (capacities.size() != 1) return std::nullopt;
  const Topology::Capacity& capacity = topology.capacities[capacities[0]];
  memory.bandwidth = capacity.bandwidth;
  memory.cached_bandwidth = capacity.cached_bandwidth;
  memory.cache_bytes = capacity.cache_bytes;
  return memory;
}

HostTime InPlaceTime(const SharedMemory& memory, const InPlaceCost& cost, int workers,
                     double bytes) {
  if (workers <= 1) return {};
  const double traffic = cost.traffic * bytes;
  return {.meetings = cost.rounds,
          .meeting = memory.handover,
          .traffic = traffic,
          .memory = memory.Seconds(traffic, cost.touched * bytes)};
}

HostTime StepwiseTime(const SharedMemory& memory, int workers, double bytes, bool reduces) {
  if (workers <= 1) return {};
  const double n = workers;
  const double copies = reduces ? 2 * 2 * n * bytes : 0;  // in and out, each read and written
  return {.meetings = 2,
          .meeting = memory.handover,
          .traffic = copies,
          .memory = memory.Seconds(copies, 2 * n * bytes)};
}

}  // namespace syncopate::plan
