#include "sync/sample_source.h"

#include "base/clock.h"
#include "base/status.h"
#include "worker/job_services.h"

namespace syncopate::sync {
namespace {

class LiveSampleSource final : public SampleSource {
 public:
  LiveSampleSource(worker::LiveSamples& samples, absl::Duration timeout)
      : samples_(samples), timeout_ns_(absl::ToInt64Nanoseconds(timeout)) {}

  absl::StatusOr<GrantAnswer> Next(uint64_t want) override {
    return samples_.NextAndWait(want, DeadlineNs());
  }
  void Use(const std::vector<ServiceId>& ranges) override { samples_.Use(ranges); }
  absl::StatusOr<SummaryAnswer> Say() override {
    // A request says a limited number of ranges.
    do {
      SYNCOPATE_RETURN_IF_ERROR(samples_.NextAndWait(0, DeadlineNs()).status());
    } while (samples_.unsaid() > 0);
    return samples_.Summary(DeadlineNs());
  }

 private:
  int64_t DeadlineNs() const { return MonotonicClock().NowNs() + timeout_ns_; }

  worker::LiveSamples& samples_;
  const int64_t timeout_ns_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<SampleSource>> StartSampleSource(Worker& worker,
                                                                const SampleRangesOptions& ranges,
                                                                absl::Duration timeout) {
  SYNCOPATE_ASSIGN_OR_RETURN(worker::LiveSamples* const samples,
                             worker::ServicesOf(worker).StartSamples(ranges));
  return std::make_unique<LiveSampleSource>(*samples, timeout);
}

}  // namespace syncopate::sync
