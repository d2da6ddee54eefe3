// A proof of how good a forest plan is, and its check.
//
// The proof is a price for every part of the network, such that a second of the whole network costs
// at most 1. At these prices, moving a byte over any reduce tree and any broadcast tree of one root
// costs at least the bound; so no packing of trees moves a byte in less time.
//
// The check works from the topology, the trees and the prices alone. It shares no code with the
// planner; it does not look for trees either: what cheapest trees cost is proved by cuts.
#ifndef SYNCOPATE_PLAN_FOREST_CERTIFICATE_H_
#define SYNCOPATE_PLAN_FOREST_CERTIFICATE_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "base/digest.h"
#include "model/topology.h"
#include "plan/forest/packing.h"

namespace syncopate::plan {

struct PartPrice {
  NetworkPart part;
  double price = 0;  // for each byte that crosses it
};

// Sets of active workers, one inside the other: a forest whose first nodes are the active workers
// in order. A tree must enter (broadcast) or leave (reduce) every set without its root. If no edge
// costs less than the sets that it enters or leaves, a root's tree costs at least the price of all
// sets without the root.
struct NestedCuts {
  // By set: the next larger set (-1: none), and the price.
  std::vector<int> parent;
  std::vector<double> price;
};

// Where some workers only relay, cheapest trees are hard to find, and each root has cuts of its
// own: sets of any workers that hold an active one and not the root.
struct PricedCut {
  std::vector<int> set;  // sorted ranks
  double price = 0;
};
struct RootCuts {
  int root = 0;
  std::vector<PricedCut> reduce;
  std::vector<PricedCut> broadcast;
};

struct ForestCertificate {
  double seconds_per_byte = 0;  // what the plan takes
  double bound = 0;             // what no packing of trees takes less than
  std::vector<PartPrice> prices;
  // The cuts if all workers that may take part are active; else empty.
  NestedCuts reduce_cuts;
  NestedCuts broadcast_cuts;
  // The cuts if some workers only relay: one entry for each active worker. Else empty.
  std::vector<RootCuts> root_cuts;
  Digest topology;  // DigestOf(topology)
  Digest trees;     // DigestOf(pairs)

  double gap() const { return seconds_per_byte > 0 ? 1 - bound / seconds_per_byte : 0; }
};

Digest DigestOf(absl::Span<const TreePair> pairs);

// OK if the pairs (over ranks, all in one stage) are an all-reduce of the active workers on this
// topology, take the time that the certificate says, and cannot be beaten by more than its gap.
// Else FailedPrecondition with what is wrong. `relays`: whether other workers may pass data on.
absl::Status CheckCertificate(const Topology& topology, absl::Span<const int> placement,
                              absl::Span<const int> active, bool relays,
                              absl::Span<const TreePair> pairs,
                              const ForestCertificate& certificate);

}  // namespace syncopate::plan

#endif  // SYNCOPATE_PLAN_FOREST_CERTIFICATE_H_
