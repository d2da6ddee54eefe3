// Where a worker that trains gets its samples from if a service deals them out (services/sample_ranges.h):
// exact epochs at unequal speed.
#ifndef SYNCOPATE_SYNC_SAMPLE_SOURCE_H_
#define SYNCOPATE_SYNC_SAMPLE_SOURCE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/sample_ranges.h"
#include "syncopate/service.h"
#include "syncopate/syncopate.h"

namespace syncopate::sync {

using services::AddSamples;
using services::AppendProgress;
using services::CountOf;
using services::GrantAnswer;
using services::Interval;
using services::Intervals;
using services::ReadProgress;
using services::SampleProgress;
using services::SampleRange;
using services::SampleRangesOptions;
using services::SummaryAnswer;

// It is a seam: tests put ranges of their own in its place.
class SampleSource {
 public:
  virtual ~SampleSource() = default;
  // Up to `want` samples, of one epoch. Waits, where none are left to take and one may still come back.
  // No ranges: all epochs are over, or others may wait for ranges that this worker holds: it is to
  // Use() them, which the next call says, before it asks again.
  virtual absl::StatusOr<GrantAnswer> Next(uint64_t want) = 0;
  // These ranges went into an update that has been applied.
  virtual void Use(const std::vector<ServiceId>& ranges) = 0;
  // Says so at once, and returns how far all workers together are.
  virtual absl::StatusOr<SummaryAnswer> Say() = 0;
};

// By every worker of the job, once, with the same ranges. The worker must outlive what it returns, and
// `timeout` bounds every wait.
absl::StatusOr<std::unique_ptr<SampleSource>> StartSampleSource(
    Worker& worker, const SampleRangesOptions& ranges, absl::Duration timeout = absl::Minutes(5));

}  // namespace syncopate::sync

#endif  // SYNCOPATE_SYNC_SAMPLE_SOURCE_H_
