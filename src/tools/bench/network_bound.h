// A lower bound of the time of a collective on a lab's network, by the rates that its file
// declares. docs/bench.md has the formulas and why they hold.
#ifndef SYNCOPATE_TOOLS_BENCH_NETWORK_BOUND_H_
#define SYNCOPATE_TOOLS_BENCH_NETWORK_BOUND_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "lab/spec.h"
#include "syncopate/collective.h"

namespace syncopate::tools::bench {

// Counts only what hosts must send to each other: workers of one host exchange their data for free.
// Latencies and background flows count as nothing, so that it stays a bound whatever they do.
class NetworkBound {
 public:
  // `slots`: workers on each host that runs any, in the order of lab::WorkerHosts(); ranks are
  // dealt to the hosts in this order. `active`: the ranks whose data counts, the others may relay;
  // empty: all.
  NetworkBound(const lab::Spec& spec, const std::vector<int>& slots,
               const std::vector<int>& active = {});

  // Returns nothing if only links without a rate are in the way.
  std::optional<double> Seconds(Collective collective, uint64_t bytes) const;

 private:
  // Some workers and what their side of the network can send to the other side.
  struct Cut {
    int workers = 0;      // active ones
    bool root = false;    // rank 0 is among them
    bool target = false;  // the last rank is among them
    double rate = 0;      // bytes/s, infinite if not shaped
  };
  // All workers, in several parts.
  struct Partition {
    int parts = 0;        // with active workers in them
    double rate_out = 0;  // bytes/s, of all parts together
    double rate_in = 0;
  };

  // The sides of the network that `inside` (by node) and its complement are.
  void AddCuts(const lab::Spec& spec, const std::vector<bool>& inside);
  void AddPartition(const lab::Spec& spec, const std::vector<std::vector<bool>>& parts);
  // What must cross the cut.
  double BytesAcross(const Cut& cut, Collective collective, uint64_t bytes) const;

  std::vector<int> workers_at_;  // by node
  std::vector<int> active_at_;   // by node: those of them that are active
  int workers_ = 0;
  int active_ = 0;
  int root_ = -1;  // the nodes of the first and of the last rank
  int target_ = -1;
  std::vector<Cut> cuts_;
  std::vector<Partition> partitions_;
};

}  // namespace syncopate::tools::bench

#endif  // SYNCOPATE_TOOLS_BENCH_NETWORK_BOUND_H_
