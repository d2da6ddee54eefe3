#include "worker/live_values.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/status.h"

namespace syncopate::worker {

LiveValues::LiveValues(JobServices& services, Kind kind)
    : services_(services), kind_(std::move(kind)) {}

void LiveValues::Begin(int64_t position) {
  if (agreement_.load(std::memory_order_acquire) != nullptr) return;
  MutexLock lock(&begin_mutex_);
  if (agreement_.load(std::memory_order_relaxed) != nullptr) return;
  absl::StatusOr<LiveAgreement*> agreement = services_.Agreement();
  if (agreement.ok()) {
    const absl::Status registered =
        (*agreement)
            ->Register({.name = kind_.name,
                        .scale = kind_.scale,
                        .further = kind_.further,
                        .check =
                            [check = kind_.check, beside = kind_.long_check, services = &services_](
                                uint64_t, std::string bytes, LiveAgreement::Checked checked) {
                              if (!beside) return checked(check(bytes));
                              services->DoBeside(
                                  [check, bytes = std::move(bytes), checked = std::move(checked)] {
                                    checked(check(bytes));
                                  });
                            },
                        .adopt =
                            [inbox = inbox_](uint64_t version, std::string bytes, int64_t from) {
                              MutexLock taking(&inbox->mutex);
                              inbox->version = std::max(inbox->version, version);
                              inbox->values.push_back(
                                  {.version = version, .bytes = std::move(bytes), .from = from});
                            }},
                       position);
    if (!registered.ok()) agreement = registered;
  }
  if (!agreement.ok()) {
    Log(LogLevel::kInfo, "no ", kind_.name, " is agreed on: ", agreement.status().message());
    return;
  }
  agreement_.store(*agreement, std::memory_order_release);
}

void LiveValues::End() {
  LiveAgreement* const agreement = agreement_.load(std::memory_order_acquire);
  if (agreement != nullptr) agreement->Release(kind_.name);
}

void LiveValues::Propose(uint64_t version, std::string bytes) {
  const auto not_used = [name = kind_.name, version,
                         contended = kind_.contended](const absl::Status& why) {
    // A worker that leaves does not care.
    Log(contended || absl::IsCancelled(why) ? LogLevel::kInfo : LogLevel::kWarn, name, " ", version,
        " is not used: ", why.message());
  };
  LiveAgreement* const agreement = agreement_.load(std::memory_order_acquire);
  if (agreement == nullptr) return not_used(absl::FailedPreconditionError("nobody agrees yet"));
  const absl::StatusOr<Digest> digest = kind_.check(bytes);
  if (!digest.ok()) return not_used(digest.status());
  {
    MutexLock lock(&inbox_->mutex);
    inbox_->version = std::max(inbox_->version, version);
    ++inbox_->undecided;
  }
  const absl::Status proposed =
      agreement->Propose(kind_.name, version, *digest, std::move(bytes),
                         [not_used, inbox = inbox_](const absl::StatusOr<int64_t>& from) {
                           if (!from.ok()) not_used(from.status());
                           MutexLock lock(&inbox->mutex);
                           --inbox->undecided;
                         });
  if (proposed.ok()) return;
  not_used(proposed);
  MutexLock lock(&inbox_->mutex);
  --inbox_->undecided;
}

bool LiveValues::Undecided() const {
  MutexLock lock(&inbox_->mutex);
  return inbox_->undecided > 0;
}

uint64_t LiveValues::NextVersion() const {
  MutexLock lock(&inbox_->mutex);
  return inbox_->version + 1;
}

std::vector<LiveValues::Value> LiveValues::TakeNew() {
  MutexLock lock(&inbox_->mutex);
  return std::exchange(inbox_->values, {});
}

bool LiveValues::MayReach(int64_t position) {
  LiveAgreement* const agreement = agreement_.load(std::memory_order_acquire);
  return agreement == nullptr || agreement->MayReach(kind_.name, position);
}

absl::Status LiveValues::Reach(int64_t position, int64_t deadline_ns) {
  LiveAgreement* const agreement = agreement_.load(std::memory_order_acquire);
  if (agreement == nullptr) return absl::OkStatus();
  absl::Status reached = agreement->Reach(kind_.name, position, deadline_ns);
  // Without an agreement nothing new can come into force; whatever ended it shows in the job's calls. But a
  // value that was asked about may have come into force for others.
  return GetBlast(reached) == BlastRadius::kJob ? reached : absl::OkStatus();
}

}  // namespace syncopate::worker
