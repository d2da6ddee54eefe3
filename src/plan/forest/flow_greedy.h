// A first Steiner tree, by letting water flow from the terminals towards the root.
#ifndef SYNCOPATE_PLAN_FOREST_FLOW_GREEDY_H_
#define SYNCOPATE_PLAN_FOREST_FLOW_GREEDY_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "plan/forest/worker_tree.h"

namespace syncopate::plan {

// GreedyFLAC of Watel and Weisser ("A practical greedy approximation for the directed Steiner tree
// problem"). Every terminal that is not yet in the tree is a spring. Its water fills the edges into
// it at one unit of cost per unit of time; a full edge passes the water on, so that the edges
// behind it fill as many times faster as terminals drain through them. An edge that would join two
// streams of the same terminal stays shut. The first edge that fills up to the tree's side joins
// the tree, with everything that drained through it; then all the water is let out, and the rest
// start anew.
//
// Not thread-safe; keeps the sorted edges of `incoming` for the next call.
class FlowGreedy {
 public:
  // `incoming.at(to, from)` is the cost of sending from `from` to `to`. It must outlive this
  // object.
  explicit FlowGreedy(const EdgeCosts& incoming);

  // Terminals that no edges lead to from `root` stay out of the tree, as do those that are left
  // when it has looked `work_max` times at a worker.
  WorkerTree Find(int root, absl::Span<const int> terminals, int64_t work_max);

 private:
  void Start(absl::Span<const int> missing);
  // Lets the water flow until it gets to `tree`; false if it does not.
  bool FlowInto(WorkerTree& tree);
  // Passes the water of `to` on to `from` unless two streams would meet.
  void Open(int from, int to);
  // When the next edge into `worker` will be full.
  void Predict(int worker);
  void Settle(int worker);
  void JoinAll(int from, int to, WorkerTree& tree);
  const std::vector<int>& SendersTo(int worker);

  const EdgeCosts& incoming_;
  const int workers_;
  const size_t words_;                     // in a set of workers
  std::vector<std::vector<int>> senders_;  // by worker: who may send to it, the cheapest first
  int64_t work_left_ = 0;
  double now_ = 0;
  std::vector<int> wet_;  // workers that water flows through
  // The following are by worker.
  std::vector<int> rate_;      // the number of terminals that drain through it
  std::vector<double> level_;  // the height of the water in the edges into it, at time since_
  std::vector<double> since_;
  std::vector<double> full_at_;           // when its next edge will be full
  std::vector<size_t> next_;              // which edge that is, in senders_
  std::vector<uint64_t> drains_;          // words_ each: the terminals that drain through it
  std::vector<std::vector<int>> before_;  // the senders of the full, open edges into it
  std::vector<std::vector<int>> after_;   // the receivers of the full, open edges out of it
  std::vector<int> stack_;
};

}  // namespace syncopate::plan

#endif  // SYNCOPATE_PLAN_FOREST_FLOW_GREEDY_H_
