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
#include <string>
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

namespace syncopate::worker {

// Thread-safe.
class JobServices {
 public:
  // Mailbox and clock must outlive it; the mailbox must be stopped before its end.
  JobServices(Mailbox& mailbox, const Clock& clock, LiveService::Options options)
      : mailbox_(mailbox), clock_(clock), options_(std::move(options)) {}
  JobServices(const JobServices&) = delete;

  // The agreement of the job. The first call starts it. What it returns lives as long as the worker.
  absl::StatusOr<LiveAgreement*> Agreement();
  // Starts the sample ranges; once in a job.
  absl::StatusOr<LiveSamples*> StartSamples(const services::SampleRangesOptions& ranges);

  // See Worker::AddService().
  absl::Status Add(std::unique_ptr<Service> service, std::function<std::string()> report);
  // NotFound names the service that this worker has not added.
  absl::StatusOr<LiveService*> Find(absl::string_view name);

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
};

// The services of a worker's job, for the rooms that stand above this one.
JobServices& ServicesOf(Worker& worker);

}  // namespace syncopate::worker

#endif  // SYNCOPATE_WORKER_JOB_SERVICES_H_
