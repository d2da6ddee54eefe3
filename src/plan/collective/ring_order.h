// In which order a ring should pass its workers on a given network.
//
// Every byte of a ring crosses each of its edges equally often, so the ring is as slow as its
// worst resource: the largest of (edges whose route uses the resource) / bandwidth, over all links
// and shared capacities. On a network whose pairs differ, the order decides that.
#ifndef SYNCOPATE_PLAN_COLLECTIVE_RING_ORDER_H_
#define SYNCOPATE_PLAN_COLLECTIVE_RING_ORDER_H_

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "model/topology.h"

namespace syncopate::plan {

// Up to this many workers the order that BestRingOrder finds is the best there is.
inline constexpr int kExactRingWorkersMax = 8;

// The seconds that the ring's worst resource needs for one byte on every edge of the ring.
// `topology` must be valid, `order` holds workers that are placed on its devices.
absl::StatusOr<double> RingSecondsPerByte(const Topology& topology, absl::Span<const int> placement,
                                          absl::Span<const int> order);

// The active workers in an order for which that is small: the least for up to kExactRingWorkersMax
// workers, found by local search from the order by place for more. Begins with the first active
// worker. A pure function.
absl::StatusOr<std::vector<int>> BestRingOrder(const Topology& topology,
                                               absl::Span<const int> placement,
                                               absl::Span<const int> active);

// The order of BestRingOrder() if it is better than all of `known`. Nothing if one of them is as
// good, or if there are too many workers to look for an order.
absl::StatusOr<std::optional<std::vector<int>>> BetterRingOrder(
    const Topology& topology, absl::Span<const int> placement, absl::Span<const int> active,
    const std::vector<std::vector<int>>& known);

}  // namespace syncopate::plan

#endif  // SYNCOPATE_PLAN_COLLECTIVE_RING_ORDER_H_
