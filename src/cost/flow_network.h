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

#include <cstddef>
#include <cstdint>
#include <limits>
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

  // A resource has another capacity from now on, which is positive.
  void SetCapacity(double now, int resource, double capacity);

  // What all flows together draw from a resource.
  double Usage(int resource);

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
    double rate_max = 0;
    double remaining = 0;
    double rate = 0;
    double updated = 0;    // the time of `remaining`
    double completes = 0;  // at this rate
    uint64_t started = 0;  // position in the order of starts
    uint64_t stamp = 0;    // of the newest entry in `completions_`; 0: it has ended
    uint32_t mark = 0;     // the Settle() that last looked at it
    int number = 0;        // in changed_
    int tag = 0;
  };
  struct Resource {
    double capacity = 0;
    std::vector<std::pair<int, uint32_t>> flows;  // (flow, index of its share)
    uint32_t mark = 0;
    int number = 0;  // in full_
    bool dirty = false;
  };
  struct Completion {
    double time;
    int flow;
    uint64_t stamp;
    bool operator<(const Completion& other) const { return time > other.time; }  // first on top
  };

  // What Settle() has to look at again: flows, and resources that several of them draw on. A resource
  // with one flow limits nothing but that flow, and has no entry.
  struct ChangedFlow {
    int flow;
    double limit;       // that it has by itself
    double rate;        // negative: not found yet
    size_t shares_end;  // of its entries in changed_shares_, which follow those of the one before
  };
  struct ChangedShare {
    int number;  // in shared_
    double weight;
  };
  struct SharedResource {
    int resource;
    double available;     // capacity that no flow of a known rate uses
    double weight;        // sum over the other flows
    double weight_exact;  // `weight` when it was last added up from its terms
    uint32_t unfixed;     // number of the other flows
  };

  void SetDirty(int resource);
  void Remove(int flow);
  // Finds the rates of all flows that are joined with a change by shared resources.
  void Settle();
  // The first step of Settle(): which these are.
  void CollectChanged();
  void AddChanged(int flow);
  // The second step: gives every changed flow its max-min fair rate.
  void Fill();
  void Fix(ChangedFlow& flow, size_t number, double rate);
  // resource.weight, added up anew if rounding could have spoilt it.
  double ExactWeight(SharedResource& resource) const;
  // The third step: when they complete.
  void QueueCompletions();
  bool IsStale(const Completion& completion) const;

  std::vector<Resource> resources_;
  std::vector<Flow> flows_;
  std::vector<int> free_;                // flows_ that can be used again
  std::vector<int> dirty_;               // resources whose flows changed since the last Settle()
  std::vector<int> dirty_flows_;         // flows that were started since, and draw on nothing
  std::vector<Completion> completions_;  // a heap
  double now_ = 0;
  uint64_t starts_ = 0;
  uint64_t stamps_ = 0;
  uint32_t mark_ = 0;
  // Of the Settle() that runs.
  using Level = std::pair<double, int>;  // and the number in changed_ or shared_
  std::vector<ChangedFlow> changed_;
  std::vector<ChangedShare> changed_shares_;
  std::vector<SharedResource> shared_;
  std::vector<Level> limits_, levels_;  // heaps
};

}  // namespace syncopate::cost

#endif  // SYNCOPATE_COST_FLOW_NETWORK_H_
