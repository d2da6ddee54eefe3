// Flows that share capacities fairly, in virtual time.
//
// Each flow f has an amount to move and draws weight(f, r) from resource r for each unit that it
// moves. At every moment the rates are the max-min fair ones: the largest for which
//     sum over f of rate(f) * weight(f, r) <= capacity(r)   for all r
// in the sense that no rate can grow without a smaller or equal one shrinking. They are found by
// filling: all rates grow together until a resource is full, the flows that draw on it stop there,
// and the others go on.
#ifndef SYNCOPATE_COST_FLOW_NETWORK_H_
#define SYNCOPATE_COST_FLOW_NETWORK_H_

#include <cstdint>
#include <limits>
#include <queue>
#include <utility>
#include <vector>

#include "absl/types/span.h"

namespace syncopate::cost {

// Not thread-safe. Time never goes back: each call's `now` is at least the one before, and at most
// NextCompletion().
class FlowNetwork {
 public:
  struct Draw {
    int resource = 0;
    double weight = 1;  // positive
  };

  explicit FlowNetwork(std::vector<double> capacities);

  // A flow of a positive amount that draws on no resource twice; on at least one, or its rate has a
  // limit. The rate never exceeds `rate_max`. The caller's `tag` comes back when it completes. Returns
  // a number for Cancel(), which is this flow's until it has ended.
  int Start(double now, double amount, absl::Span<const Draw> draws, int tag,
            double rate_max = std::numeric_limits<double>::infinity());

  // Ends a flow that has not completed; its tag does not come back.
  void Cancel(double now, int flow);

  // When the next flow completes; infinity if there is none.
  double NextCompletion();

  // Ends the flows that complete at `now` and returns their tags, in the order in which they were
  // started.
  std::vector<int> Complete(double now);

 private:
  struct Share {
    int resource;
    double weight;
    uint32_t slot;  // where the flow stands in the resource's list
  };
  struct Flow {
    std::vector<Share> shares;
    double remaining = 0;
    double rate = 0;
    double updated = 0;      // the time of `remaining`
    double rate_before = 0;  // within Settle()
    uint64_t started = 0;    // position in the order of starts
    uint64_t stamp = 0;      // of the newest entry in `completions_`
    uint32_t mark = 0;       // the Settle() that last looked at it
    int tag = 0;
    int own = -1;        // the resource that stands for its limit, or -1
    bool fixed = false;  // within Settle(): the rate is found
  };
  struct Resource {
    double capacity = 0;
    std::vector<std::pair<int, uint32_t>> flows;  // (flow, index of its share)
    uint32_t mark = 0;
    bool dirty = false;
    // The following are valid within Settle() only.
    double available = 0;     // capacity that no fixed flow uses
    double weight = 0;        // sum over the flows that are not fixed
    double weight_exact = 0;  // `weight` when it was last added up from its terms
    uint32_t unfixed = 0;     // number of flows that are not fixed
  };
  struct Completion {
    double time;
    int flow;
    uint64_t stamp;
    bool operator>(const Completion& other) const { return time > other.time; }
  };

  void SetDirty(int resource);
  void Remove(int flow);
  // Finds the rates of all flows that are joined with a change by shared resources.
  void Settle();
  // The first step of Settle(): fills changed_flows_ and changed_resources_.
  void CollectChanged();
  // The second step: gives every changed flow its max-min fair rate.
  void Fill();
  // resource.weight, added up anew if rounding could have spoilt it.
  double ExactWeight(Resource& resource) const;
  bool IsStale(const Completion& completion) const;

  std::vector<Resource> resources_;
  std::vector<Flow> flows_;
  std::vector<int> free_;      // flows_ that can be used again
  std::vector<int> free_own_;  // resources of ended flows' limits, likewise
  std::vector<int> dirty_;     // resources whose flows changed since the last Settle()
  std::priority_queue<Completion, std::vector<Completion>, std::greater<Completion>> completions_;
  double now_ = 0;
  uint64_t starts_ = 0;
  uint64_t stamps_ = 0;
  uint32_t mark_ = 0;
  // What the current Settle() has to look at again.
  std::vector<int> changed_flows_;
  std::vector<int> changed_resources_;
};

}  // namespace syncopate::cost

#endif  // SYNCOPATE_COST_FLOW_NETWORK_H_
