// Cheapest spanning trees out of every worker at once.
//
// Edmonds' algorithm contracts cycles of cheapest entering edges until one node is left. On a graph
// in which everybody can reach everybody the contraction does not depend on the root: it is done
// once, in O(n^2), and opened up for each root in O(n) (Gabow, Galil, Spencer and Tarjan).
#ifndef SYNCOPATE_PLAN_FOREST_ARBORESCENCE_H_
#define SYNCOPATE_PLAN_FOREST_ARBORESCENCE_H_

#include <vector>

#include "plan/forest/worker_tree.h"

namespace syncopate::plan {

class Arborescences {
 public:
  // Everybody must reach everybody over edges that are not EdgeCosts::kNone; costs are finite.
  explicit Arborescences(const EdgeCosts& costs);

  // A cheapest tree with edges from parent to child that spans all workers.
  WorkerTree TreeOf(int root) const;

  // The sets of workers that were contracted, one inside the other, the workers themselves first:
  // each with the next larger one (-1: none) and the price of entering it. No edge costs less than
  // the sets that it enters, and a root's cheapest tree costs as much as all sets without the root:
  // so the prices prove that no tree is cheaper.
  std::vector<int> SetParents() const;
  std::vector<double> SetPrices() const;

 private:
  struct Node {           // a worker, or several that were contracted
    int parent = -1;      // the node that it was contracted into
    int enter_from = -1;  // the cheapest edge into it, between workers
    int enter_to = -1;
    double price = 0;        // its cost, less what entering the parts costs anyway
    std::vector<int> parts;  // the nodes that it was made of
  };

  int workers_;
  std::vector<Node> nodes_;  // the workers first, the last one holds all
};

}  // namespace syncopate::plan

#endif  // SYNCOPATE_PLAN_FOREST_ARBORESCENCE_H_
