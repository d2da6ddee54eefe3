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
  double handover = 0;  // seconds until all workers see what one has written
  // Bytes/s read and written by all workers together: in general, and while all that is touched
  // fits into `cache_bytes`.
  double bandwidth = 0;
  double cached_bandwidth = 0;
  uint64_t cache_bytes = 0;

  // Seconds to read and write `traffic` bytes where `touched` different ones are concerned.
  double Seconds(double traffic, double touched) const;
};
SharedMemory MemoryOfHost(const HostCosts& costs, int workers);

// The memory that all active workers share, if they do: all on one host that declares one.
std::optional<SharedMemory> FindSharedMemory(const CollectiveRequest& request,
                                             const Topology& topology,
                                             absl::Span<const int> placement);

// What a program costs that the engine runs as a whole in shared memory.
struct InPlaceCost {
  int rounds = 0;  // how often all workers wait for one another
  // For each byte of one worker's data: the bytes that all workers read and write, and how many
  // different bytes are among these.
  double traffic = 0;
  double touched = 0;
};
// What programs on one host take, by what the time goes to.
struct HostTime {
  int meetings = 0;    // how often all workers wait for one another
  double meeting = 0;  // the seconds of one
  double traffic = 0;  // bytes read and written
  double memory = 0;   // the seconds that they take
  double waiting() const { return meetings * meeting; }
  double seconds() const { return waiting() + memory; }
};

// What such a program takes with `bytes` of data a worker; nothing for a single worker.
HostTime InPlaceTime(const SharedMemory& memory, const InPlaceCost& cost, int workers,
                     double bytes);

// Programs that the engine runs step by step have a gate before and one after; reductions moreover
// run on a copy that becomes the data at the end. This comes on top of the steps.
HostTime StepwiseTime(const SharedMemory& memory, int workers, double bytes, bool reduces);

}  // namespace syncopate::plan

#endif  // SYNCOPATE_PLAN_COLLECTIVE_SHARED_MEMORY_H_
