// Which parts of a network the messages between workers load: the links of a route and the
// capacities that these draw on, all alike as resources with a bandwidth.
#ifndef SYNCOPATE_PLAN_COLLECTIVE_ROUTE_LOADS_H_
#define SYNCOPATE_PLAN_COLLECTIVE_ROUTE_LOADS_H_

#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "model/topology.h"

namespace syncopate::plan {

class RouteLoads {
 public:
  // For all ordered pairs of `workers`, who are placed as `placement` says. `topology` must be
  // valid; it need not outlive this.
  static absl::StatusOr<RouteLoads> Of(const Topology& topology, absl::Span<const int> placement,
                                       absl::Span<const int> workers);

  size_t workers() const { return workers_; }
  size_t resources() const { return seconds_per_byte_.size(); }
  double seconds_per_byte(int resource) const {
    return seconds_per_byte_[static_cast<size_t>(resource)];
  }
  // What a message from the worker at index `from` to the one at index `to` loads; a resource is
  // listed twice if it is crossed twice.
  const std::vector<int>& Between(size_t from, size_t to) const {
    return routes_[from * workers_ + to];
  }

 private:
  size_t workers_ = 0;
  std::vector<double> seconds_per_byte_;  // by resource
  std::vector<std::vector<int>> routes_;  // by from, then to
};

}  // namespace syncopate::plan

#endif  // SYNCOPATE_PLAN_COLLECTIVE_ROUTE_LOADS_H_
