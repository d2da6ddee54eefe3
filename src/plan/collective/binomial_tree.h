// The shape of a binomial tree, over indices 0 .. size-1.
#ifndef SYNCOPATE_PLAN_COLLECTIVE_BINOMIAL_TREE_H_
#define SYNCOPATE_PLAN_COLLECTIVE_BINOMIAL_TREE_H_

#include <vector>

namespace syncopate::plan {

// The binomial tree with root 0, in the order in which a broadcast sends along its edges; a
// reduction goes backwards. The child heads a subtree of the indices [child, child + span).
struct BinomialEdge {
  int parent = 0;
  int child = 0;
  int span = 0;
};
std::vector<BinomialEdge> BinomialTree(int size);

}  // namespace syncopate::plan

#endif  // SYNCOPATE_PLAN_COLLECTIVE_BINOMIAL_TREE_H_
