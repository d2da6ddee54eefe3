// What a collective planner is asked for, and with which options.
#ifndef SYNCOPATE_PLAN_COLLECTIVE_REQUEST_H_
#define SYNCOPATE_PLAN_COLLECTIVE_REQUEST_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "model/program.h"

namespace syncopate::plan {

// Fields that the collective has no use for are ignored.
struct CollectiveRequest {
  Collective collective = Collective::kAllReduce;
  int workers = 0;
  std::vector<int> active;  // sorted, not empty
  int root = -1;            // where HasRoot(collective); must be active
  int target = -1;          // send-receive only; must be active
  uint64_t elements = 0;    // of data; where HasBlocks(collective) the sum of block_elements
  // Where HasBlocks(collective): one entry per active worker, 0 allowed.
  std::vector<uint64_t> block_elements;

  friend bool operator==(const CollectiveRequest&, const CollectiveRequest&) = default;
};

bool IsActive(const CollectiveRequest& request, int rank);

// What only one planner understands: settings of its own, or a plan that it has prepared for a
// topology. Whoever passes it on does not look inside.
struct PlannerData {
  virtual ~PlannerData() = default;
};

// Options that a planner has no use for are ignored.
struct PlannerOptions {
  // Into how many pieces a share is cut, so that its pieces follow each other through the network.
  int pieces = 1;
  // Planners that know groups: from the smallest groups to the largest; each level is a partition
  // of the active ranks, each of its groups inside one group of the next level. All active workers
  // together are the last level, whether it is given or not.
  std::vector<std::vector<std::vector<int>>> levels;
  // Planners that know machines: the tree on which `root` collects from the workers of its machine,
  // which is its group in levels[0], and hands out to them. A root without a tree is sent to by
  // everybody.
  struct LocalTree {
    int root = 0;
    std::vector<std::pair<int, int>> edges;  // (parent, child), parents before their children
  };
  std::vector<LocalTree> local_trees;
  // Planners that know servers: the ranks that add, active or not. Empty: the first active one.
  std::vector<int> servers;
  // Planners in which workers pass data on to a neighbour: the active ranks in that order. Empty:
  // ascending.
  std::vector<int> order;
  // Planners that cut data by size: the bytes of a sub-chunk, about. 0: as the planner likes.
  uint64_t chunk_bytes = 0;
  // The size of the request's elements. Only planners that cut data by size ask for it.
  uint64_t bytes_per_element = 4;
  std::shared_ptr<const PlannerData> data;  // null: none
};

// OK if a planner for `collective` can answer the request with these options; else InvalidArgument
// with the first fault. Options are checked also where the planner has no use for them.
absl::Status ValidateRequest(Collective collective, const CollectiveRequest& request,
                             const PlannerOptions& options);

}  // namespace syncopate::plan

#endif  // SYNCOPATE_PLAN_COLLECTIVE_REQUEST_H_
