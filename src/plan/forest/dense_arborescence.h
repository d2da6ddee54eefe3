// The cheapest tree out of a root that spans a small set of workers, any of which may send to any
// other: the inner step of the search for Steiner trees, which solves it many thousand times.
#ifndef SYNCOPATE_PLAN_FOREST_DENSE_ARBORESCENCE_H_
#define SYNCOPATE_PLAN_FOREST_DENSE_ARBORESCENCE_H_

#include <vector>

#include "absl/types/span.h"
#include "plan/forest/worker_tree.h"

namespace syncopate::plan {

// Edmonds' algorithm on a matrix: follow the cheapest edges backwards, contract each cycle that
// this closes. The time is quadratic in the number of members. One object may solve many problems
// and keeps its memory between them; it is not thread-safe.
class DenseArborescence {
 public:
  // Spans `members`; the first is the root. `incoming.at(to, from)` is the cost of sending from
  // `from` to `to`. Returns the cost, infinity if there is no such tree.
  double Solve(const EdgeCosts& incoming, absl::Span<const int> members);

  // After a Solve() that returned a finite cost, by position among the members: the position of the
  // parent. The root's is 0.
  const std::vector<int>& parent() const { return parent_; }
  // After such a Solve(), by position: the sum of the prices of the sets around the member in the
  // optimal dual. A worker outside that sends to members v at costs c(v) and costs d to reach
  // lowers the tree's cost by at most the sum of max(0, prices(v) - c(v)), less d.
  const std::vector<double>& prices() const { return prices_; }

 private:
  void Load(const EdgeCosts& incoming, absl::Span<const int> members);
  bool GrowFrom(int start);
  void Contract(int cycle_start);
  void Expand();

  enum class Progress : char { kNew, kOnPath, kDone };

  int size_ = 0;
  // By row of a node, then position of the sender: the cost of the cheapest edge from the sender
  // into the node, and the position at which that edge arrives.
  std::vector<double> cost_;
  std::vector<int> target_;
  // By position: the outermost node that it is part of now.
  std::vector<int> outermost_;
  // By node. The positions are the first nodes; each contraction makes one more.
  std::vector<int> row_;
  std::vector<int> container_;  // the node that it was contracted into, or -1
  std::vector<int> from_;       // the ends of its cheapest incoming edge, as positions
  std::vector<int> to_;
  std::vector<double> price_;  // of that edge, after the prices inside
  std::vector<int> place_;     // on the path
  std::vector<Progress> progress_;
  std::vector<char> entered_;  // by an edge into a node around it
  std::vector<int> path_;
  std::vector<int> parent_;
  std::vector<double> prices_;
};

}  // namespace syncopate::plan

#endif  // SYNCOPATE_PLAN_FOREST_DENSE_ARBORESCENCE_H_
