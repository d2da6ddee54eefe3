#include "worker/live_samples.h"

#include <optional>
#include <utility>
#include <variant>

#include "base/status.h"
#include "worker/awaited.h"

namespace syncopate::worker {

absl::StatusOr<std::unique_ptr<LiveSamples>> LiveSamples::Start(
    Mailbox& mailbox, const Clock& clock, const LiveService::Options& options,
    const services::SampleRangesOptions& ranges) {
  SYNCOPATE_RETURN_IF_ERROR(services::SampleRanges::Validate(ranges));
  auto live = std::unique_ptr<LiveSamples>(new LiveSamples(clock));
  LiveSamples* const self = live.get();
  SYNCOPATE_ASSIGN_OR_RETURN(
      live->service_, LiveService::Start(mailbox, clock, options,
                                         std::make_unique<services::SampleRanges>(ranges), [self] {
                                           MutexLock lock(&self->mutex_);
                                           return self->holder_.Report();
                                         }));
  return live;
}

void LiveSamples::Use(const std::vector<ServiceId>& ranges) {
  MutexLock lock(&mutex_);
  holder_.Use(ranges);
}

absl::Status LiveSamples::Next(uint64_t want, Granted granted) {
  // Under the lock until the request is in the queue: requests of two threads keep their order.
  MutexLock lock(&mutex_);
  services::SampleHolder::Ask ask = holder_.Take(want);
  const auto answered = [this, tag = ask.tag,
                         granted = std::move(granted)](const absl::StatusOr<std::string>& answer) {
    absl::StatusOr<services::GrantAnswer> grant = absl::UnknownError("");
    {
      MutexLock held(&mutex_);
      grant = holder_.Answered(tag, answer.status().code(),
                               answer.ok() ? *answer : answer.status().message());
    }
    // The holder knows an error's code and text; the radius is the status's.
    if (granted) granted(answer.ok() ? std::move(grant) : answer.status());
  };
  const absl::Status asked = service_->Ask(std::move(ask.bytes), answered);
  if (!asked.ok()) {
    (void)holder_.Answered(ask.tag, asked.code(), asked.message());
  }
  return asked;
}

absl::StatusOr<services::GrantAnswer> LiveSamples::NextAndWait(uint64_t want, int64_t deadline_ns) {
  using Grant = absl::StatusOr<services::GrantAnswer>;
  {
    MutexLock lock(&mutex_);
    if (want > 0 && !late_.empty()) {
      services::GrantAnswer grant = std::move(late_.front());
      late_.pop_front();
      return grant;
    }
  }
  const auto awaited = std::make_shared<Awaited<Grant>>();
  SYNCOPATE_RETURN_IF_ERROR(Next(want, [this, awaited](Grant grant) {
    if (awaited->Bring(grant) || !grant.ok()) return;
    MutexLock lock(&mutex_);
    late_.push_back(*std::move(grant));
  }));
  std::optional<Grant> grant = awaited->Wait(clock_, deadline_ns);
  return grant.has_value() ? *std::move(grant) : Grant(service_->TooLate());
}

absl::StatusOr<services::SummaryAnswer> LiveSamples::Summary(int64_t deadline_ns) {
  SYNCOPATE_ASSIGN_OR_RETURN(
      const std::string bytes,
      service_->AskAndWait(services::EncodeSampleRequest(services::SummaryRequest{}), deadline_ns));
  SYNCOPATE_ASSIGN_OR_RETURN(services::SampleAnswer answer, services::DecodeSampleAnswer(bytes));
  if (auto* summary = std::get_if<services::SummaryAnswer>(&answer)) return std::move(*summary);
  return absl::InternalError("the sample ranges answer something else than a summary");
}

}  // namespace syncopate::worker
