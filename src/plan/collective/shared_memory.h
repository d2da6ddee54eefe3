// Memory that the workers of one host share: what moving bytes through it and waiting for one
// another costs, and what programs cost there.
//
// The engine runs some programs as a whole in shared memory, not by their steps. What counts then
// is how often all workers wait for one another (rounds) and how many bytes are read and written.
#ifndef SYNCOPATE_PLAN_COLLECTIVE_SHARED_MEMORY_H_
#define SYNCOPATE_PLAN_COLLECTIVE_SHARED_MEMORY_H_

#include <cstdint>
#include <optional>

#include "absl/types/span.h"
#include "model/topology.h"
#include "model/topology_makers.h"
#include "plan/collective/request.h"

namespace syncopate::plan {

// The memory that the workers of one host share, and what waiting for one another costs them.
struct SharedMemory {
  double handover = 0;          // seconds until all see what one has written
  double bandwidth = 0;         // bytes/s read and written by all together
  double cached_bandwidth = 0;  // likewise while all that is touched fits into `cache_bytes`
  uint64_t cache_bytes = 0;

  // Seconds to read and write `traffic` bytes where `touched` different ones are concerned.
  double Seconds(double traffic, double touched) const;
};
SharedMemory MemoryOfHost(const HostCosts& costs, int workers);

// The memory that all active workers share, if they do: all on one host that declares one.
std::optional<SharedMemory> FindSharedMemory(const CollectiveRequest& request,
                                             const Topology& topology,
                                             absl::Span<const int> placement);

// A program that runs as a whole.
struct InPlaceCost {
  int rounds = 0;      // how often all workers wait for one another
  double traffic = 0;  // bytes read and written by all workers, for each byte of one worker's data
  double touched = 0;  // different bytes among these, likewise
};
// With `bytes` of data a worker. No time for a single worker.
double InPlaceSeconds(const SharedMemory& memory, const InPlaceCost& cost, int workers,
                      double bytes);

// Programs that the engine runs step by step have a gate before and one after; reductions moreover
// run on a copy that becomes the data at the end. This comes on top of the steps.
double StepwiseSeconds(const SharedMemory& memory, int workers, double bytes, bool reduces);

}  // namespace syncopate::plan

#endif  // SYNCOPATE_PLAN_COLLECTIVE_SHARED_MEMORY_H_
