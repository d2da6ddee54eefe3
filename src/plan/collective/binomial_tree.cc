#include "plan/collective/binomial_tree.h"

#include <algorithm>
#include <bit>

namespace syncopate::plan {

std::vector<BinomialEdge> BinomialTree(int size) {
  std::vector<BinomialEdge> edges;
  // In each round every index that has the data passes it on over half the distance.
  for (int span = static_cast<int>(std::bit_ceil(static_cast<unsigned>(size))) / 2; span >= 1;
       span /= 2) {
    for (int parent = 0; parent + span < size; parent += 2 * span) {
      const int child = parent + span;
      edges.push_back({parent, child, std::min(span, size - child)});
    }
  }
  return edges;
}

}  // namespace syncopate::plan
