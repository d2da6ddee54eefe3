#include "worker/job_services.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/status.h"

namespace syncopate::worker {
namespace {

constexpr absl::string_view kOwnNames[] = {"agreement", "samples"};

}  // namespace

absl::StatusOr<LiveAgreement*> JobServices::Agreement() {
  MutexLock lock(&mutex_);
  if (agreement_ == nullptr) {
    SYNCOPATE_ASSIGN_OR_RETURN(agreement_, LiveAgreement::Start(mailbox_, clock_, options_));
  }
  return agreement_.get();
}

absl::StatusOr<LiveSamples*> JobServices::StartSamples(
    const services::SampleRangesOptions& ranges) {
  MutexLock lock(&mutex_);
  if (samples_ != nullptr) {
    return absl::FailedPreconditionError("the sample ranges of this job have been started before");
  }
  SYNCOPATE_ASSIGN_OR_RETURN(samples_, LiveSamples::Start(mailbox_, clock_, options_, ranges));
  return samples_.get();
}

absl::Status JobServices::Add(std::unique_ptr<Service> service, std::function<std::string()> report,
                              std::optional<int> owner) {
  const auto refuse = [](absl::Status status) {
    return WithBlast(std::move(status), BlastRadius::kOperation);
  };
  if (service == nullptr) return refuse(absl::InvalidArgumentError("the service is null"));
  std::string name(service->name());
  for (const absl::string_view own : kOwnNames) {
    if (name == own) {
      return refuse(absl::AlreadyExistsError(
          absl::StrCat("service ", name, ": this is the name of one of the library's own")));
    }
  }
  if (owner) name = NameFor(name, *owner);
  MutexLock lock(&mutex_);
  if (added_.contains(name)) {
    return refuse(absl::AlreadyExistsError(absl::StrCat("service ", name, " is added twice")));
  }
  const size_t count = owner ? owned_ : added_.size() - owned_;
  const size_t most = owner ? kStrategyServicesMax : limits::kServicesMax;
  if (count >= most) {
    return refuse(absl::ResourceExhaustedError(absl::StrCat(
        "there are ", most, owner ? " services of strategies" : " services", " already")));
  }
  LiveService::Options options = options_;
  options.name = name;
  absl::StatusOr<std::unique_ptr<LiveService>> live =
      LiveService::Start(mailbox_, clock_, options, std::move(service), std::move(report));
  if (!live.ok()) return refuse(live.status());
  added_[name] = *std::move(live);
  owned_ += owner ? 1 : 0;
  return absl::OkStatus();
}

// With the longest name of a service and any number it fits the topic of a mailbox.
std::string JobServices::NameFor(absl::string_view service, int owner) {
  return absl::StrCat(service, "/", owner);
}

absl::StatusOr<LiveService*> JobServices::Find(absl::string_view name) {
  MutexLock lock(&mutex_);
  const auto found = added_.find(name);
  if (found != added_.end()) return found->second.get();
  return WithBlast(
      absl::NotFoundError(absl::StrCat("this worker has not added a service \"", name, "\"")),
      BlastRadius::kOperation);
}

std::vector<LiveService*> JobServices::All() {
  MutexLock lock(&mutex_);
  std::vector<LiveService*> all;
  if (agreement_ != nullptr) all.push_back(&agreement_->service());
  if (samples_ != nullptr) all.push_back(&samples_->service());
  for (const auto& [name, service] : added_) all.push_back(service.get());
  return all;
}

void JobServices::Leave(int64_t deadline_ns) {
  const std::vector<LiveService*> all = All();
  for (LiveService* service : all) service->Leave();
  for (LiveService* service : all) {
    if (service->WaitUntilMayLeave(deadline_ns)) continue;
    Log(LogLevel::kInfo, "service ", service->name(), ": left before it was handed over");
  }
}

void JobServices::Close(const absl::Status& status) {
  for (LiveService* service : All()) service->Close(status);
}

}  // namespace syncopate::worker
