// A worker's side of the sample ranges (sample_ranges.h), as a pure state machine: which ranges it
// holds, which it has used, and what it knows if the service has to be rebuilt.
//
//   Take(batch) ... granted: compute, update ... Use(ranges) ... Take(batch) says that they are used
//
// Not thread-safe.
#ifndef SYNCOPATE_SERVICES_SAMPLE_HOLDER_H_
#define SYNCOPATE_SERVICES_SAMPLE_HOLDER_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "services/sample_message.h"

namespace syncopate::services {

class SampleHolder {
 public:
  // A request to the service. Call Answered() with the tag.
  struct Ask {
    uint64_t tag = 0;
    std::string bytes;
  };

  // These ranges went into an update that has been applied: the next request says so. Ranges that
  // this worker does not hold are ignored.
  void Use(const std::vector<ServiceId>& ranges);
  // Asks for up to `want` samples, and says what has been used. With want 0 it only says so.
  Ask Take(uint64_t want);
  // What was granted; no ranges if nothing was wanted or all epochs are over.
  absl::StatusOr<GrantAnswer> Answered(uint64_t tag, absl::StatusCode code,
                                       absl::string_view bytes);

  const std::map<ServiceId, SampleRange>& held() const { return held_; }
  size_t unsaid() const { return used_.size(); }

  std::string Report() const;

 private:
  std::map<ServiceId, SampleRange> held_;            // not said, or not known to have been heard
  std::vector<ServiceId> used_;                      // of these: to be said
  std::map<uint64_t, std::vector<ServiceId>> said_;  // by tag of the request
  std::map<uint64_t, Intervals> counted_;            // by epoch that is not known to be complete
  uint64_t done_ = 0;
  uint64_t next_tag_ = 1;
};

}  // namespace syncopate::services

#endif  // SYNCOPATE_SERVICES_SAMPLE_HOLDER_H_
