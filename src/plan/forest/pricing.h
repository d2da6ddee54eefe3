// The cheapest trees of every root at given prices of the network's resources.
#ifndef SYNCOPATE_PLAN_FOREST_PRICING_H_
#define SYNCOPATE_PLAN_FOREST_PRICING_H_

#include <vector>

#include "absl/types/span.h"
#include "plan/forest/packing_network.h"
#include "plan/forest/worker_tree.h"

namespace syncopate::plan {

// Each list has one entry for every active member, as the root of the tree.
struct PricedTrees {
  std::vector<WorkerTree> trees;
  std::vector<double> costs;
  std::vector<WorkerTree> shallow;  // if asked for: nearly as cheap and less deep
};

class Pricer {
 public:
  // `network` must outlive this. `active`: sorted members; the others relay.
  Pricer(const PackingNetwork& network, std::vector<int> active);

  // Whether costs are the least ones: all members are active. Else they are those of good trees,
  // and bounds have to be asked for.
  bool exact() const { return exact_; }

  PricedTrees Reduce(absl::Span<const double> prices, bool shallow = false) const;
  PricedTrees Broadcast(absl::Span<const double> prices, bool shallow = false) const;
  // What no reduce (broadcast) tree of a root costs less than.
  std::vector<double> ReduceBounds(absl::Span<const double> prices) const;
  std::vector<double> BroadcastBounds(absl::Span<const double> prices) const;

 private:
  PricedTrees Find(const EdgeCosts& costs, bool shallow) const;
  std::vector<double> Bounds(const EdgeCosts& costs) const;

  const PackingNetwork& network_;
  std::vector<int> active_;
  bool exact_;
};

}  // namespace syncopate::plan

#endif  // SYNCOPATE_PLAN_FOREST_PRICING_H_
