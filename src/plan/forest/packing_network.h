// A topology as tree packing sees it: which workers may send to which, and what each such edge
// draws on.
//
// The workers that may take part are numbered 0 .. size-1 here ("members"): the active ones and, if
// they may relay, the others. A *resource* is a link or a shared capacity; an edge between two
// members loads every resource of its route. Resources that the same edges load in the same way are
// one, at the smallest of their rates.
#ifndef SYNCOPATE_PLAN_FOREST_PACKING_NETWORK_H_
#define SYNCOPATE_PLAN_FOREST_PACKING_NETWORK_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "model/topology.h"
#include "plan/forest/worker_tree.h"

namespace syncopate::plan {

// A link or a shared capacity of the topology.
struct NetworkPart {
  bool is_link = true;
  int index = 0;
};
double RateOf(const Topology& topology, NetworkPart part);
const std::string& NameOf(const Topology& topology, NetworkPart part);

struct PackingResource {
  NetworkPart part;                // the slowest of them
  double rate = 0;                 // bytes/s
  std::vector<NetworkPart> parts;  // all that are loaded alike
};

class PackingNetwork {
 public:
  // `topology` must be valid. `placement` by rank; `ranks`: who may take part, sorted.
  // InvalidArgument if a rank has no device or two cannot reach each other.
  static absl::StatusOr<PackingNetwork> Make(const Topology& topology,
                                             absl::Span<const int> placement,
                                             absl::Span<const int> ranks);

  int size() const { return static_cast<int>(ranks_.size()); }
  const std::vector<int>& ranks() const { return ranks_; }  // by member
  const std::vector<PackingResource>& resources() const { return resources_; }
  // The resources that a message from one member to another loads; one that is loaded twice stands
  // here twice. None between workers of one device.
  absl::Span<const int> Loads(int from, int to) const {
    const size_t edge = Edge(from, to);
    return absl::MakeConstSpan(loads_).subspan(begin_[edge], begin_[edge + 1] - begin_[edge]);
  }
  // The latency of the route, and the time that both ends spend on a message.
  double Latency(int from, int to) const { return latency_[Edge(from, to)]; }

  // Takes the rates of another version of the same topology. FailedPrecondition if more than rates
  // and latencies differ; nothing has changed then.
  absl::Status UpdateRates(const Topology& topology);

  // The same network in which resources without a price have only this part of their rate.
  PackingNetwork WithHeadroom(absl::Span<const double> prices, double part) const;

  // The same network with fewer resources: all that `becomes` gives the same number, from 0 on, are
  // one with the sum of their rates. plan/forest/symmetry.h says what that is good for. It cannot
  // be updated.
  PackingNetwork Joined(absl::Span<const int> becomes) const;

  // What edges cost at these prices of the resources.
  EdgeCosts CostsAt(absl::Span<const double> prices) const;

 private:
  size_t Edge(int from, int to) const {
    return static_cast<size_t>(from) * ranks_.size() + static_cast<size_t>(to);
  }
  void AddResource(const Topology& topology, NetworkPart part);
  // Makes one of those resources that the same edges load.
  void MergeResources();

  std::vector<int> ranks_;
  size_t nodes_ = 0;  // of the topology
  std::vector<std::pair<int, int>> link_ends_;
  size_t capacities_ = 0;
  std::vector<PackingResource> resources_;
  std::vector<size_t> begin_;  // by edge, then one more: where its resources stand in loads_
  std::vector<int> loads_;
  std::vector<double> latency_;  // by edge
};

}  // namespace syncopate::plan

#endif  // SYNCOPATE_PLAN_FOREST_PACKING_NETWORK_H_
