// Which parts of a network the messages between workers load.
#include "plan/collective/route_loads.h"

#include "absl/container/flat_hash_map.h"
#include "base/status.h"
#include "model/topology_routes.h"

namespace syncopate::plan {

absl::StatusOr<RouteLoads> RouteLoads::Of(const Topology& topology, absl::Span<const int> placement,
                                          absl::Span<const int> workers) {
  RouteLoads loads;
  loads.workers_ = workers.size();
  // Links have their own index here, capacities follow; only what is used becomes a resource.
  absl::flat_hash_map<size_t, int> resource_of;
  const auto resource = [&](size_t index, double bandwidth) {
    const auto [it, is_new] =
        resource_of.try_emplace(index, static_cast<int>(loads.seconds_per_byte_.size()));
    if (is_new) loads.seconds_per_byte_.push_back(1 / bandwidth);
    return it->second;
  };
  Routes routes(topology);
  for (const int from : workers) {
    for (const int to : workers) {
      std::vector<int>& used = loads.routes_.emplace_back();
      if (from == to) continue;
      SYNCOPATE_ASSIGN_OR_RETURN(
          const std::vector<int> links,
          routes.Between(placement[static_cast<size_t>(from)], placement[static_cast<size_t>(to)]));
      for (const int index : links) {
        const Topology::Link& link = topology.links[static_cast<size_t>(index)];
        used.push_back(resource(static_cast<size_t>(index), link.bandwidth));
        for (const int shared : link.capacities) {
          const size_t capacity = static_cast<size_t>(shared);
          used.push_back(
              resource(topology.links.size() + capacity, topology.capacities[capacity].bandwidth));
        }
      }
    }
  }
  return loads;
}

}  // namespace syncopate::plan
