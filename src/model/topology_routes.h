// The routes that messages take through a topology.
//
// Where the topology names no route, a message takes the path of least latency, among those the one
// of fewest links; what is still equal is decided by the order of the nodes and links, so that all
// workers compute the same. Hosts and switches pass messages on, devices do not: a program that
// wants a device to relay says so in its steps. (A route that the topology names may pass through
// anything.)
#ifndef SYNCOPATE_MODEL_TOPOLOGY_ROUTES_H_
#define SYNCOPATE_MODEL_TOPOLOGY_ROUTES_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/topology.h"

namespace syncopate {

// Not thread-safe: it remembers the paths from a source once it has found them.
class Routes {
 public:
  // `topology` must be valid, must outlive this and must not change.
  explicit Routes(const Topology& topology);

  // The links from one device to another; none if they are the same. FailedPrecondition if there is
  // no way.
  absl::StatusOr<std::vector<int>> Between(int from, int to);

 private:
  // Latency in picoseconds, then the number of links: the smaller the better.
  using Length = std::pair<int64_t, int>;

  // For each node that passes messages on, the last link of the best path to it from `source`,
  // which does too; -1 where there is none.
  const std::vector<int>& LastLinks(int source);
  // The length of the best path between two nodes that pass messages on, by `last` of the first.
  Length LengthOf(const std::vector<int>& last, int from, int to) const;

  const Topology& topology_;
  // By node: the links that leave it and those that enter it.
  std::vector<std::vector<int>> links_out_;
  std::vector<std::vector<int>> links_in_;
  absl::flat_hash_map<std::pair<int, int>, int> named_;        // (from, to) to index in routes
  absl::flat_hash_map<int, std::vector<int>> last_by_source_;  // what LastLinks() has found
};

// Checks that there is a route between any two devices; else InvalidArgument with the first pair
// that has none. All indices must be in range.
absl::Status CheckReachability(const Topology& topology);

}  // namespace syncopate

#endif  // SYNCOPATE_MODEL_TOPOLOGY_ROUTES_H_
