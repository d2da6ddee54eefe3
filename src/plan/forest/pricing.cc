#include "plan/forest/pricing.h"

#include <algorithm>
#include <utility>

#include "plan/forest/arborescence.h"
#include "plan/forest/steiner.h"

namespace syncopate::plan {
namespace {

// How much more an edge may cost in a shallow tree.
constexpr double kShallowSlack = 0.5;

}  // namespace

Pricer::Pricer(const PackingNetwork& network, std::vector<int> active)
    : network_(network),
      active_(std::move(active)),
      exact_(active_.size() == static_cast<size_t>(network.size())) {}

PricedTrees Pricer::Find(const EdgeCosts& costs, bool shallow) const {
  PricedTrees found;
  // A tree that spans all members is a minimum-cost arborescence, which is found exactly. One that
  // may leave out relays is a Steiner tree, which is NP-hard.
  if (exact_) {
    const Arborescences arborescences(costs);
    for (const int root : active_) found.trees.push_back(arborescences.TreeOf(root));
  } else {
    SteinerFinder finder(costs);
    for (const int root : active_) found.trees.push_back(finder.Find(root, active_));
  }
  for (const WorkerTree& tree : found.trees) found.costs.push_back(CostOf(tree, costs));
  // Shallow trees are offered besides the cheapest ones because their pipelines are shorter.
  if (!shallow) return found;
  for (const WorkerTree& tree : found.trees) {
    found.shallow.push_back(Flatten(tree, costs, kShallowSlack));
    PruneLeaves(active_, found.shallow.back());
  }
  return found;
}

std::vector<double> Pricer::Bounds(const EdgeCosts& costs) const {
  if (exact_) return Find(costs, false).costs;  // the costs of cheapest trees are the bounds
  std::vector<double> bounds;
  for (const int root : active_) bounds.push_back(SteinerLowerBound(costs, root, active_));
  return bounds;
}

// A reduce tree is a broadcast tree of the network with all edges turned around.
PricedTrees Pricer::Reduce(absl::Span<const double> prices, bool shallow) const {
  return Find(network_.CostsAt(prices).Reversed(), shallow);
}

PricedTrees Pricer::Broadcast(absl::Span<const double> prices, bool shallow) const {
  return Find(network_.CostsAt(prices), shallow);
}

std::vector<double> Pricer::ReduceBounds(absl::Span<const double> prices) const {
  return Bounds(network_.CostsAt(prices).Reversed());
}

std::vector<double> Pricer::BroadcastBounds(absl::Span<const double> prices) const {
  return Bounds(network_.CostsAt(prices));
}

}  // namespace syncopate::plan
