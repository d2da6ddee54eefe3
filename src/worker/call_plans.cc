#include "worker/call_plans.h"

#include <bit>
#include <utility>

#include "base/log.h"
#include "base/status.h"

namespace syncopate::worker {

namespace {

// Calls of one kind differ in the version of the network at most.
plan::ProgramKey NameOf(const plan::ProgramKey& key) {
  plan::ProgramKey name = key;
  name.network_version = 0;
  return name;
}

}  // namespace

bool CallPlans::WouldWait(const plan::ProgramKey& key) const {
  const auto found = kinds_.find(NameOf(key));
  if (found == kinds_.end() || frozen_) return false;
  return found->second->vote != nullptr && !found->second->vote->Done();
}

std::shared_ptr<ComingPlan> CallPlans::Awaited(const plan::ProgramKey& key) {
  const auto found = awaited_.find(key);
  if (found != awaited_.end()) return found->second->done() ? nullptr : found->second;
  if (awaited_.size() >= kKindsMax) awaited_.clear();
  std::shared_ptr<ComingPlan> coming = cache_.Order(key, ProgramCache::For::kWaiting);
  awaited_.emplace(key, coming);
  return coming->done() ? nullptr : coming;
}

// What failed is not planned again, which would not mend it.
absl::StatusOr<PlannedProgram> CallPlans::Get(const plan::ProgramKey& key) const {
  const auto found = awaited_.find(key);
  if (found == awaited_.end() || !found->second->done()) {
    return absl::UnavailableError("it is not planned yet");
  }
  return found->second->result();
}

absl::StatusOr<CallPlans::Kind*> CallPlans::KindOf(const plan::ProgramKey& key) {
  plan::ProgramKey name = NameOf(key);
  const auto found = kinds_.find(name);
  if (found != kinds_.end()) return found->second.get();
  SYNCOPATE_ASSIGN_OR_RETURN(ProgramCache::Offer offer, cache_.Find(key));
  if (offer.now.program == nullptr) {
    if (Awaited(key) != nullptr) return nullptr;
    SYNCOPATE_ASSIGN_OR_RETURN(offer.now, Get(key));
    offer.better = false;
  }
  auto kind = std::make_unique<Kind>();
  kind->key = kind->coming_key = key;
  kind->version = key.network_version;
  kind->serving = std::move(offer.now);
  if (kinds_.size() >= kKindsMax) {
    passing_ = std::move(kind);
    return passing_.get();
  }
  kind->better = offer.better;
  return kinds_.emplace(std::move(name), std::move(kind)).first->second.get();
}

// The network has a new version, from this call on for all members.
absl::Status CallPlans::Ask(Kind& kind, uint64_t version) {
  kind.coming_key = kind.key;
  kind.coming_key.network_version = version;
  SYNCOPATE_ASSIGN_OR_RETURN(ProgramCache::Offer offer, cache_.Find(kind.coming_key));
  kind.version = version;
  kind.calls = 0;
  kind.vote = nullptr;
  kind.better = offer.better;
  kind.coming = nullptr;
  if (!kind.better) {
    kind.serving = std::move(offer.now);
    kind.key = kind.coming_key;
  }
  Order(kind);
  return absl::OkStatus();
}

void CallPlans::Order(Kind& kind) {
  if (std::exchange(kind.better, false)) kind.coming = cache_.Order(kind.coming_key);
}

void CallPlans::Switch(Kind& kind) {
  if (kind.coming == nullptr || !kind.coming->done() || !kind.coming->result().ok()) return;
  kind.serving = *kind.coming->result();
  kind.key = kind.coming_key;
  kind.coming = nullptr;
}

absl::Status CallPlans::BeforeCall(Kind& kind, uint64_t version, int64_t deadline_ns) {
  if (frozen_) {
    // A vote that runs is not waited for: others may never come to it.
    kind.vote = nullptr;
    kind.coming = nullptr;
    kind.better = false;
    kind.version = version;
    return absl::OkStatus();
  }
  if (version != kind.version) SYNCOPATE_RETURN_IF_ERROR(Ask(kind, version));
  if (std::unique_ptr<PlanVote> vote = std::move(kind.vote); vote != nullptr) {
    const absl::StatusOr<bool> all = vote->Outcome(deadline_ns);
    if (all.ok() && *all) {
      Switch(kind);
    } else if (!all.ok()) {
      // A member is lost or late, and the group with it.
      Log(LogLevel::kInfo, "a group keeps to its programs: ", all.status().message());
      kind.coming = nullptr;
    }
  }
  if (!kind.better && kind.coming == nullptr) return absl::OkStatus();
  const uint64_t number = kind.calls++;
  if (number == 1) Order(kind);
  if (number < 2 || !std::has_single_bit(number)) return absl::OkStatus();
  const bool ready = kind.coming->done() && kind.coming->result().ok();
  absl::StatusOr<std::unique_ptr<PlanVote>> vote = start_vote_(ready);
  if (vote.ok()) {
    kind.vote = *std::move(vote);
  } else {
    kind.coming = nullptr;
  }
  return absl::OkStatus();
}

}  // namespace syncopate::worker
