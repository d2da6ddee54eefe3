#include "worker/group_impl.h"

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/status.h"
#include "worker/call_request.h"
#include "worker/prompt_start.h"

namespace syncopate::internal {

absl::Status GroupImpl::Run(const Call& call) {
  SYNCOPATE_ASSIGN_OR_RETURN(engine::OperationSpec spec, Prepare(call));
  // Only a call that the caller waits for tells how much time was spent on calls.
  if (watch == nullptr || !world) return worker->engine.Run(std::move(spec));
  const int64_t begin_ns = MonotonicClock().NowNs();
  absl::Status status = worker->engine.Run(std::move(spec));
  watch->Waited(MonotonicClock().NowNs() - begin_ns);
  return status;
}

absl::Status GroupImpl::AwaitPlan(const Call& call) {
  SYNCOPATE_RETURN_IF_ERROR(worker->CheckProcess());
  Call without_data = call;
  if (call.data.data == nullptr) without_data.data.data = this;  // it is not looked at
  SYNCOPATE_RETURN_IF_ERROR(worker::CheckCall(without_data, size(), self));
  if (!worker->network) return absl::OkStatus();
  std::shared_ptr<worker::ComingPlan> coming;
  {
    MutexLock lock(&mutex_);
    SYNCOPATE_RETURN_IF_ERROR(FindKind(call, last_version_));
    if (last_ != nullptr) {
      plans_.Order(*last_);
      coming = last_->coming;
    }
  }
  int32_t ready = coming == nullptr ? 1 : 0;
  if (coming != nullptr && coming->WaitUntil(MonotonicClock().NowNs() + TimeoutNs(call))) {
    ready = coming->result().ok() ? 1 : 0;
  }
  // All members are between the same two calls here, so this is where they can change. Those that have
  // planned wait for the others.
  SYNCOPATE_RETURN_IF_ERROR(Run({.data = Array::Of(&ready, 1),
                                 .op = ReduceOp::kMin,
                                 .timeout = absl::Nanoseconds(2 * TimeoutNs(call))}));
  if (ready == 0) {
    return WithBlast(absl::DeadlineExceededError(absl::StrCat(
                         Name(call.collective), ": not all members have planned it yet")),
                     BlastRadius::kOperation);
  }
  MutexLock lock(&mutex_);
  SYNCOPATE_RETURN_IF_ERROR(FindKind(call, last_version_));
  if (last_ != nullptr && last_->coming == coming) worker::CallPlans::Switch(*last_);
  return absl::OkStatus();
}

void GroupImpl::Close() {
  std::shared_ptr<engine::EngineGroup> closed;  // is let go of after the lock
  MutexLock lock(&mutex_);
  closed.swap(group_);
  if (closed != nullptr) closed->port->Hurry();
  votes_.Close();
}

bool GroupImpl::WouldWait(const Call& call) {
  if (!worker->network) return false;
  // All that may wait, in the order in which Prepare() comes to it.
  if (world && !worker->MayReachCall(calls_ + 1)) return true;
  if (world && watch != nullptr && watch->WouldWait()) return true;
  MutexLock lock(&mutex_);
  if (group_ == nullptr || !call.program.empty()) return false;
  const plan::ProgramKey key = KeyOf(call, last_version_);
  return plans_.WouldWait(key) || WouldPlanSubChunks(key);
}

bool GroupImpl::WouldPlanSubChunks(const plan::ProgramKey& key) {
  const worker::CallPlans::Kind* const kind = plans_.Find(key);
  if (tuner == nullptr || kind == nullptr || kind->serving.chunk_bytes == 0) return false;
  plan::ProgramKey refined = kind->key;
  refined.chunk_bytes = tuner->NextSize(calls_ + 1, kind->key, kind->serving.chunk_bytes);
  return refined.chunk_bytes > 0 && plans_.WouldPlan(refined);
}

absl::StatusOr<engine::OperationSpec> GroupImpl::Prepare(const Call& call) {
  SYNCOPATE_RETURN_IF_ERROR(worker->CheckProcess());
  SYNCOPATE_RETURN_IF_ERROR(worker::CheckCall(call, size(), self));
  const int64_t deadline_ns = MonotonicClock().NowNs() + TimeoutNs(call);
  if (worker::PromptStart::Wanted() && WouldWait(call)) return worker::PromptStart::WouldWait();
  uint64_t planned_by = version;
  const int64_t number = ++calls_;
  if (world && worker->network) {
    SYNCOPATE_RETURN_IF_ERROR(worker->ReachCall(number, deadline_ns));
  }
  if (watch != nullptr && world) {
    planned_by =
        watch->BeforeCall(number, call.data.elements * SizeOf(call.data.type), deadline_ns);
  } else if (watch != nullptr) {
    watch->BesideCall();
  }
  std::shared_ptr<std::atomic<int64_t>> took;
  std::shared_ptr<engine::EngineGroup> group;
  absl::StatusOr<std::shared_ptr<const engine::CompiledProgram>> program =
      ProgramFor(call, number, planned_by, deadline_ns, group, took);
  if (!program.ok()) {
    if (watch != nullptr) watch->Ended();
    return program.status();
  }
  if (watch != nullptr && world) watch->Planned((*program)->digest);
  const int64_t now_ns = MonotonicClock().NowNs();
  engine::OperationSpec spec{.group = std::move(group),
                             .program = *std::move(program),
                             .data = call.data.data,
                             .type = call.data.type,
                             .op = Reduces(call.collective) ? call.op : ReduceOp::kSum,
                             .weight = worker::IsActive(call, self) ? call.weight : 0,
                             .priority = call.priority,
                             .deadline_ns = deadline_ns};
  if (took != nullptr || watch != nullptr || odd_ != nullptr) {
    // The pointer to the watch stays valid: the engine is destroyed before it.
    spec.completed = [took, now_ns, watch = watch, odd = odd_,
                      ended = call.ended](const absl::Status& status) {
      if (odd != nullptr && absl::IsFailedPrecondition(status)) odd->store(true);
      if (took != nullptr && status.ok()) took->store(MonotonicClock().NowNs() - now_ns);
      if (watch != nullptr) watch->Ended();
      if (ended) ended(status);
    };
  } else {
    spec.completed = call.ended;
  }
  return spec;
}

absl::StatusOr<std::unique_ptr<worker::PlanVote>> GroupImpl::StartVote(bool yes) {
  return votes_.Start(*group_, yes, vote_deadline_ns_);
}

absl::StatusOr<std::shared_ptr<const engine::CompiledProgram>> GroupImpl::ProgramFor(
    const Call& call, int64_t number, uint64_t network_version, int64_t deadline_ns,
    std::shared_ptr<engine::EngineGroup>& group, std::shared_ptr<std::atomic<int64_t>>& took) {
  MutexLock lock(&mutex_);
  if (group_ == nullptr) {
    return WithBlast(absl::FailedPreconditionError(
                         absl::StrCat(Name(call.collective), ": this worker has closed the group")),
                     BlastRadius::kOperation);
  }
  group = group_;
  last_version_ = network_version;
  if (odd_ != nullptr && odd_->load(std::memory_order_relaxed)) plans_.Freeze();
  SYNCOPATE_RETURN_IF_ERROR(FindKind(call, network_version));
  if (last_own_ != nullptr) return last_own_;
  if (!worker::CallPlans::IsSettled(*last_, network_version)) {
    vote_deadline_ns_ = deadline_ns;
    SYNCOPATE_RETURN_IF_ERROR(plans_.BeforeCall(*last_, network_version, deadline_ns));
  }
  return Refined(*last_, number, took);
}

absl::Status GroupImpl::FindKind(const Call& call, uint64_t network_version) {
  const uint64_t element_bytes = SizeOf(call.data.type);
  // Training makes the same call again and again, so the last one is compared field by field
  // before a key is built and hashed.
  const bool same =
      (last_ != nullptr || last_own_ != nullptr) && last_request_.collective == call.collective &&
      last_request_.elements == call.data.elements && last_element_bytes_ == element_bytes &&
      last_algorithm_ == call.algorithm && last_text_ == call.program &&
      (!HasRoot(call.collective) || last_request_.root == call.root) &&
      (call.collective != Collective::kSendReceive || last_request_.target == call.target) &&
      last_blocks_ == call.block_elements && last_active_ == call.active;
  if (same) return absl::OkStatus();
  const plan::ProgramKey key = KeyOf(call, network_version);
  last_ = nullptr;
  last_own_ = nullptr;
  if (call.program.empty()) {
    SYNCOPATE_ASSIGN_OR_RETURN(last_, plans_.KindOf(key));
  } else {
    SYNCOPATE_ASSIGN_OR_RETURN(const worker::PlannedProgram own,
                               worker->own_programs.Get(key, call.program));
    last_own_ = own.program;
  }
  last_request_ = key.request;
  last_element_bytes_ = element_bytes;
  last_algorithm_ = call.algorithm;
  last_text_ = call.program;
  last_blocks_ = call.block_elements;
  last_active_ = call.active;
  return absl::OkStatus();
}

plan::ProgramKey GroupImpl::KeyOf(const Call& call, uint64_t network_version) const {
  const uint64_t element_bytes = SizeOf(call.data.type);
  plan::ProgramKey key;
  key.request = worker::RequestOf(call, size());
  key.element_bytes = element_bytes;
  key.algorithm = call.algorithm;
  if (key.algorithm.empty()) {
    key.algorithm =
        std::string(worker->rules.For(call.collective, call.data.elements * element_bytes));
  }
  key.self = self;
  key.ranks = members;
  key.network_version = network_version;
  return key;
}

absl::StatusOr<std::shared_ptr<const engine::CompiledProgram>> GroupImpl::Refined(
    const worker::CallPlans::Kind& kind, int64_t number,
    std::shared_ptr<std::atomic<int64_t>>& took) {
  if (tuner == nullptr || kind.serving.chunk_bytes == 0) return kind.serving.program;
  adapt::ChunkTuner::Advice advice = tuner->BeforeCall(number, kind.key, kind.serving.chunk_bytes);
  took = std::move(advice.took);
  if (advice.chunk_bytes == 0) return kind.serving.program;
  plan::ProgramKey key = kind.key;
  key.chunk_bytes = advice.chunk_bytes;
  absl::StatusOr<worker::PlannedProgram> planned = plans_.Get(key);
  if (planned.ok()) return planned->program;
  // The size may give too many steps, say. That is so on all workers, which then all run the
  // proposed program, and the size has no measurement.
  took = nullptr;
  return kind.serving.program;
}

}  // namespace syncopate::internal
