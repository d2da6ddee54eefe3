// Values of one kind that the workers of a running job agree on (adapt/value_agreement.h), by its
// agreement service. The service begins with the first Begin() of a kind: a job in which nothing could be
// decided on pays nothing.
#ifndef SYNCOPATE_WORKER_LIVE_VALUES_H_
#define SYNCOPATE_WORKER_LIVE_VALUES_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "adapt/value_agreement.h"
#include "base/digest.h"
#include "base/mutex.h"
#include "worker/job_services.h"
#include "worker/live_agreement.h"

namespace syncopate::worker {

// Thread-safe.
class LiveValues final : public adapt::ValueAgreement {
 public:
  struct Kind {
    std::string name = {};
    LiveAgreement::Scale scale = LiveAgreement::Scale::kCall;
    uint8_t further = services::kUnitsFurtherMax;  // see LiveAgreement::Kind
    // The digest of a value, or why it cannot be used: of the value alone, since it may be asked after the
    // end of this.
    std::function<absl::StatusOr<Digest>(absl::string_view bytes)> check = {};
    // A check that may take more than a millisecond is made beside. Others are made on the control thread.
    bool long_check = false;
    bool contended = false;  // several workers propose, so that a refusal is no news
  };
  // Every worker makes it with the same kind, once. The services must outlive it.
  LiveValues(JobServices& services, Kind kind);

  // Nothing is agreed on by this worker any more; by its user, before its end. A kind that is never ended counts
  // among those of the job as long as that runs, of which there may be limits::kAgreementKindsMax.
  void End();

  void Begin(int64_t position) override;
  void Propose(uint64_t version, std::string bytes) override;
  std::vector<Value> TakeNew() override;

  // Whether something that this worker has proposed is neither agreed on nor refused yet.
  bool Undecided() const;
  // A version that is later than all that this worker has proposed or knows to be agreed on.
  uint64_t NextVersion() const;

  // Before this worker goes to `position`, which never goes back. It may wait there, at most until the
  // deadline: then DeadlineExceeded. Where the job cannot agree on anything any more, what is in force
  // stays, and nobody waits.
  absl::Status Reach(int64_t position, int64_t deadline_ns);
  // Whether Reach() would return at once.
  bool MayReach(int64_t position);

 private:
  // What has come; the agreement may bring more after the end of this.
  struct Inbox {
    Mutex mutex;
    std::vector<Value> values ABSL_GUARDED_BY(mutex);
    uint64_t version ABSL_GUARDED_BY(mutex) = 0;  // the latest that is agreed on or proposed here
    int undecided ABSL_GUARDED_BY(mutex) = 0;     // proposals
  };

  JobServices& services_;
  const Kind kind_;
  const std::shared_ptr<Inbox> inbox_ = std::make_shared<Inbox>();
  Mutex begin_mutex_;
  std::atomic<LiveAgreement*> agreement_{
      nullptr};  // null: it has not begun; written under the mutex
};

}  // namespace syncopate::worker

#endif  // SYNCOPATE_WORKER_LIVE_VALUES_H_
