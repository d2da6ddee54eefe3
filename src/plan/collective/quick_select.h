// The choice of an algorithm on one host, quick enough for every call: no program is made and no
// lock is taken.
//
// On one host what counts is how often workers must wait for one another, and how many bytes go
// through the memory they share. For an all-reduce of S bytes among n workers the engine does
//   one-shot  everybody copies its data to where all see it (2S), one gate, everybody adds up all
//             copies (nS read, S written):                     1 hand-over, n(n+3) S bytes
//   direct    one gate, everybody adds up its share of all data (nS read in all) and writes it to
//             all (nS written in all), one gate:               2 hand-overs, 2n S bytes
// so one-shot wins while the bytes that it moves in addition cost less than a hand-over.
#ifndef SYNCOPATE_PLAN_COLLECTIVE_QUICK_SELECT_H_
#define SYNCOPATE_PLAN_COLLECTIVE_QUICK_SELECT_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "model/topology_makers.h"
#include "syncopate/collective.h"

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

// An all-reduce of `bytes` a worker as above. No time for a single worker.
double OneShotSeconds(const SharedMemory& memory, int workers, double bytes);
double DirectSeconds(const SharedMemory& memory, int workers, double bytes);
// Programs that the engine runs step by step have a gate before and one after; reductions moreover
// run on a copy that becomes the data at the end. This comes on top of the steps.
double StepwiseSeconds(const SharedMemory& memory, int workers, double bytes, bool reduces);

// Workers that are to agree must be given the same numbers. Immutable, so thread-safe.
class QuickSelect {
 public:
  QuickSelect(int workers, const HostCosts& costs);

  // The name of a planner for that collective of `bytes` a worker.
  absl::string_view Algorithm(Collective collective, uint64_t bytes) const;

  // The largest all-reduce for which it is "one-shot".
  uint64_t one_shot_bytes_max() const { return one_shot_bytes_max_; }

 private:
  uint64_t one_shot_bytes_max_ = 0;
};

}  // namespace syncopate::plan

#endif  // SYNCOPATE_PLAN_COLLECTIVE_QUICK_SELECT_H_
