// Measures what moving data through memory and meeting one another costs the workers of this
// machine: the numbers that predictions for one host are made of (model/topology_makers.h).
#ifndef SYNCOPATE_TOOLS_DOCTOR_HOST_MEASUREMENT_H_
#define SYNCOPATE_TOOLS_DOCTOR_HOST_MEASUREMENT_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "model/topology_makers.h"

namespace syncopate::tools {

// Bytes read plus bytes written a second by the reductions of the engine, with `threads` threads
// that divide `buffers` buffers of together `bytes` among them: as in an all-reduce, each adds up
// its share of all buffers and writes the sum to all of them. The best of several windows of
// together about `duration_ns`; 0 if there is not enough memory.
double MeasureFoldBytesPerSecond(const Clock& clock, int threads, int buffers, uint64_t bytes,
                                 int64_t duration_ns);

// Seconds that one meeting of `threads` threads takes: all have come before any goes on. They wait
// as workers do, by looking again and again if each has a core of its own, else by giving way. The
// best of several windows of together about `duration_ns`.
double MeasureMeetingSeconds(const Clock& clock, int threads, int cores, int64_t duration_ns);

// A bandwidth by the bytes that are touched.
struct FoldRate {
  uint64_t bytes = 0;
  double bytes_per_second = 0;
};

// Tells the cache from the memory behind it in rates by rising sizes: what is more than the
// geometric mean of the best rate and that of the last size is in the cache. Sets
// memory_bandwidth, cached_bandwidth and cache_bytes. Rates of machines without such a step give a
// cache of no bytes.
void SetBandwidths(const std::vector<FoldRate>& rates, HostCosts& costs);

struct HostMeasurement {
  HostCosts costs;
  // Other programs kept the cores from it, so that nothing is as quick as it could be.
  bool busy = false;
};

// All of it in about a second on a quiet machine, in at most `bytes_max` of memory; nothing if that
// is too little. What is not measured (message_overhead) has its default.
std::optional<HostMeasurement> MeasureHost(const Clock& clock, int cores, uint64_t bytes_max);

}  // namespace syncopate::tools

#endif  // SYNCOPATE_TOOLS_DOCTOR_HOST_MEASUREMENT_H_
