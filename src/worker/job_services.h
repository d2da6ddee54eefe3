// The services of a running job, at this worker: agreement, sample ranges, and those that are added
// by name. Each is started by its first user, which must be one of all workers alike; a job that uses
// none pays for none.
#ifndef SYNCOPATE_WORKER_JOB_SERVICES_H_
#define SYNCOPATE_WORKER_JOB_SERVICES_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "services/sample_ranges.h"
#include "syncopate/service.h"
#include "syncopate/syncopate.h"
#include "worker/live_agreement.h"
#include "worker/live_samples.h"
#include "worker/live_service.h"
#include "worker/mailbox.h"
#include "worker/side_thread.h"

namespace syncopate::worker {

// Of a job, beside limits::kServicesMax others.
inline constexpr uint64_t kStrategyServicesMax = 256;

// Thread-safe.
class JobServices {
 public:
  // Mailbox and clock must outlive it; the mailbox must be stopped before its end.
  JobServices(Mailbox& mailbox, const Clock& clock, LiveService::Options options)
      : mailbox_(mailbox), clock_(clock), options_(std::move(options)) {}
  JobServices(const JobServices&) = delete;

  // The ranks that may host, first choice first, the same on all workers: the first live one does.
  const std::vector<int>& host_order() const { return options_.candidates; }

  // The agreement of the job. The first call starts it. What it returns lives as long as the worker.
  absl::StatusOr<LiveAgreement*> Agreement();
  // Starts the sample ranges; once in a job.
  absl::StatusOr<LiveSamples*> StartSamples(const services::SampleRangesOptions& ranges);

  // See Worker::AddService(). `owner`: adds it for that user alone, by whose number it is found; there may be
  // one of this name for each. Those of strategies are such (AddServiceFor()).
  absl::Status Add(std::unique_ptr<Service> service, std::function<std::string()> report,
                   std::optional<int> owner = std::nullopt);
  // By what name Find() and Worker::Ask() know it.
  static std::string NameFor(absl::string_view service, int owner);
  // NotFound names the service that this worker has not added.
  absl::StatusOr<LiveService*> Find(absl::string_view name);

  // Has work done that takes too long for the control thread, in order. What has not begun when this ends is
  // dropped.
  void DoBeside(std::function<void()> work) { beside_.Do(std::move(work)); }

  // Numbers what workers make in the same order to talk with each other; from 0.
  int NextMessenger() { return messengers_++; }

  // Hands over what this worker knows, before it leaves the job in good order. Waits for the others up
  // to the deadline; after that they find out themselves what is lost.
  void Leave(int64_t deadline_ns);
  // The mailbox is stopped: what is not answered gets this error.
  void Close(const absl::Status& status);

 private:
  std::vector<LiveService*> All();

  Mailbox& mailbox_;
  const Clock& clock_;
  const LiveService::Options options_;
  std::atomic<int> messengers_{0};
  Mutex mutex_;
  std::unique_ptr<LiveAgreement> agreement_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<LiveSamples> samples_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::unique_ptr<LiveService>, std::less<>> added_ ABSL_GUARDED_BY(mutex_);
  size_t owned_ ABSL_GUARDED_BY(mutex_) = 0;  // of these, by somebody
  SideThread beside_;                         // ends before all that its work uses
};

// The services of a worker's job, for the rooms that stand above this one.
JobServices& ServicesOf(Worker& worker);

// Adds a service for one user of all workers alike, such as a synchronizer (JobServices::NextMessenger()). It begins
// in the state of a new service, whatever others of its name there were, and lives as long as the job: workers end
// their users at different moments, and the others still ask. Its limit is kStrategyServicesMax.
absl::Status AddServiceFor(Worker& worker, int owner, std::unique_ptr<Service> service);

}  // namespace syncopate::worker

#endif  // SYNCOPATE_WORKER_JOB_SERVICES_H_
