// Sample ranges in a running job: exact epochs at unequal speed (services/sample_ranges.h).
//
//   loop: grant = samples.Next(batch, deadline); over? end; compute, update; samples.Use(grant's ids)
//
// A range counts when its holder says so after the update that used it; the next request says it.
#ifndef SYNCOPATE_WORKER_LIVE_SAMPLES_H_
#define SYNCOPATE_WORKER_LIVE_SAMPLES_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "services/sample_holder.h"
#include "services/sample_ranges.h"
#include "worker/live_service.h"
#include "worker/mailbox.h"

namespace syncopate::worker {

// Thread-safe.
class LiveSamples {
 public:
  using Granted = std::function<void(absl::StatusOr<services::GrantAnswer>)>;

  // By every worker of the job, with the same ranges. Mailbox and clock must outlive it; the mailbox
  // must be stopped before its end.
  static absl::StatusOr<std::unique_ptr<LiveSamples>> Start(
      Mailbox& mailbox, const Clock& clock, const LiveService::Options& options,
      const services::SampleRangesOptions& ranges);
  LiveSamples(const LiveSamples&) = delete;

  // These ranges went into an update that has been applied.
  void Use(const std::vector<ServiceId>& ranges);
  // Asks for up to `want` samples more, and says which ranges have been used. `granted` is called once,
  // on the control thread: while another batch is computed, say.
  absl::Status Next(uint64_t want, Granted granted);
  // The same, and waits. Nobody waits except at the very end, where a range may still come back.
  absl::StatusOr<services::GrantAnswer> NextAndWait(uint64_t want, int64_t deadline_ns);
  // How many used ranges no request has said yet.
  size_t unsaid() {
    MutexLock lock(&mutex_);
    return holder_.unsaid();
  }
  // How far all workers together are.
  absl::StatusOr<services::SummaryAnswer> Summary(int64_t deadline_ns);

  LiveService& service() { return *service_; }

 private:
  explicit LiveSamples(const Clock& clock) : clock_(clock) {}

  const Clock& clock_;
  std::unique_ptr<LiveService> service_;
  Mutex mutex_;
  services::SampleHolder holder_ ABSL_GUARDED_BY(mutex_);
  // Granted when nobody waited for it any more: what the next one gets.
  std::deque<services::GrantAnswer> late_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace syncopate::worker

#endif  // SYNCOPATE_WORKER_LIVE_SAMPLES_H_
