#include "worker/group_impl.h"

#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/status.h"
#include "worker/call_request.h"
#include "worker/prompt_start.h"

namespace syncopate::internal {
namespace {

// A call that waits here looks this often whether a member is lost: nobody would wake it.
constexpr int64_t kLookNs = 10'000'000;

}  // namespace

absl::Status GroupImpl::Run(const Call& call) {
  SYNCOPATE_ASSIGN_OR_RETURN(engine::OperationSpec spec, Prepare(call));
  return worker->engine.Run(std::move(spec));
}

absl::Status GroupImpl::AwaitPlan(const Call& call) {
  SYNCOPATE_RETURN_IF_ERROR(worker->CheckProcess());
  Call without_data = call;
  if (call.data.data == nullptr) without_data.data.data = this;  // it is not looked at
  SYNCOPATE_RETURN_IF_ERROR(worker::CheckCall(without_data, size(), self));
  if (!worker->network) return absl::OkStatus();
  const Patience patience = {.deadline_ns = MonotonicClock().NowNs() + TimeoutNs(call)};
  const auto find = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return FindKind(call, nullptr, last_version_);
  };
  // The plan without which there are no such calls, or that of a program that they bring; else the one that
  // they change to.
  std::shared_ptr<worker::ComingPlan> first, better;
  if (!call.program.empty()) {
    first = OrderOwn(call);
  } else {
    MutexLock lock(&mutex_);
    SYNCOPATE_ASSIGN_OR_RETURN(first, find());
    if (first == nullptr) {
      plans_.Order(*last_);
      better = last_->coming;
    }
  }
  int32_t ready = 1;
  if (first != nullptr) {
    ready = Await(*first, patience) == Waited::kOver ? 1 : 0;
    // What cannot be planned here cannot be planned anywhere.
    if (ready == 1) SYNCOPATE_RETURN_IF_ERROR(first->result().status());
  } else if (better != nullptr) {
    ready = Await(*better, patience) == Waited::kOver && better->result().ok() ? 1 : 0;
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
  if (better == nullptr) return absl::OkStatus();
  MutexLock lock(&mutex_);
  SYNCOPATE_RETURN_IF_ERROR(find().status());
  if (last_ != nullptr && last_->coming == better) worker::CallPlans::Switch(*last_);
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
  // All that may wait for others, in the order in which Prepare() comes to it.
  if (world && !worker->MayReachCall(calls_ + 1)) return true;
  MutexLock lock(&mutex_);
  if (group_ == nullptr || !call.program.empty()) return false;
  return plans_.WouldWait(KeyOf(call, last_version_));
}

// ---- waiting

bool GroupImpl::MemberIsLost() const {
  if (worker->transport->losses() == 0) return false;
  const std::vector<transport::Loss> losses = worker->transport->Lost();
  return std::any_of(losses.begin(), losses.end(), [this](const transport::Loss& loss) {
    return std::find(members.begin(), members.end(), loss.rank) != members.end();
  });
}

GroupImpl::Waited GroupImpl::Await(worker::ComingPlan& coming, const Patience& patience) {
  for (;;) {
    const bool done = coming.done();
    const int64_t now_ns = MonotonicClock().NowNs();
    // Also where it has come by now: an operation that begins at its deadline costs the group.
    if (done) return now_ns < patience.deadline_ns ? Waited::kOver : Waited::kLate;
    if (MemberIsLost()) return Waited::kLost;
    if (patience.prompt) return Waited::kRefused;
    if (now_ns >= patience.deadline_ns) return Waited::kLate;
    if (coming.WaitUntil(std::min(patience.deadline_ns, now_ns + kLookNs))) continue;
    MutexLock lock(&mutex_);
    if (group_ == nullptr) return Waited::kClosed;
  }
}

GroupImpl::Waited GroupImpl::TakePlace(const Patience& patience) {
  Waited waited = Waited::kOver;
  if (in_place_ || !line_.empty()) {
    const void* const me = &waited;
    line_.push_back(me);
    while (in_place_ || line_.front() != me) {
      const int64_t now_ns = MonotonicClock().NowNs();
      waited = group_ == nullptr                ? Waited::kClosed
               : MemberIsLost()                 ? Waited::kLost
               : patience.prompt                ? Waited::kRefused
               : now_ns >= patience.deadline_ns ? Waited::kLate
                                                : Waited::kOver;
      if (waited != Waited::kOver) break;
      place_free_.WaitFor(
          &mutex_, std::chrono::nanoseconds(std::min(patience.deadline_ns - now_ns, kLookNs)));
    }
    std::erase(line_, me);
  }
  if (waited == Waited::kOver) {
    in_place_ = true;
  } else if (!line_.empty()) {
    place_free_.SignalAll();
  }
  return waited;
}

void GroupImpl::LeavePlace() {
  in_place_ = false;
  if (!line_.empty()) place_free_.SignalAll();
}

absl::Status GroupImpl::Closed(const Call& call) const {
  return WithBlast(absl::FailedPreconditionError(
                       absl::StrCat(Name(call.collective), ": this worker has closed the group")),
                   BlastRadius::kOperation);
}

absl::StatusOr<engine::OperationSpec> GroupImpl::Instead(const Call& call, const Patience& patience,
                                                         Waited waited, absl::string_view what) {
  if (waited == Waited::kRefused) return worker::PromptStart::WouldWait();
  if (waited == Waited::kLate) {
    return WithBlast(absl::DeadlineExceededError(absl::StrCat(
                         Name(call.collective), ": ", what,
                         " by the deadline of this call, which has not begun: nothing is lost, and "
                         "it can be made again")),
                     BlastRadius::kOperation);
  }
  if (group_ == nullptr) return Closed(call);
  plan::ProgramKey key = KeyOf(call, version);
  key.algorithm.clear();
  key.request.elements = 0;
  std::fill(key.request.block_elements.begin(), key.request.block_elements.end(), 0);
  SYNCOPATE_ASSIGN_OR_RETURN(worker::PlannedProgram nothing, worker->programs.GetQuick(key));
  return engine::OperationSpec{.group = group_,
                               .program = std::move(nothing.program),
                               .type = call.data.type,
                               .op = ReduceOp::kSum,
                               .priority = call.priority,
                               .deadline_ns = patience.deadline_ns,
                               .hopeless = true,
                               .completed = call.ended};
}

// ---- from a call to its program

std::shared_ptr<worker::ComingPlan> GroupImpl::OrderOwn(const Call& call) {
  auto known = std::make_shared<worker::ComingPlan>();
  plan::ProgramKey key;
  {
    MutexLock lock(&mutex_);
    if (last_own_ != nullptr && IsLikeLast(call)) {
      known->Finish(worker::PlannedProgram{.program = last_own_});
      return known;
    }
    key = KeyOf(call, version);
    if (reading_ != nullptr && reading_->key == key && reading_->text == call.program) {
      return reading_->program;
    }
  }
  if (auto read = worker->own_programs.Find(key, call.program)) {
    known->Finish(*std::move(read));
    return known;
  }
  auto reading = std::make_unique<Reading>();
  reading->key = key;
  reading->text = call.program;
  // The call may be over before its text is read.
  reading->program =
      worker->programs.Order([&programs = worker->own_programs, key, text = call.program] {
        return programs.Get(key, text);
      });
  MutexLock lock(&mutex_);
  reading_ = std::move(reading);
  return reading_->program;
}

void GroupImpl::ForgetReading(const worker::ComingPlan& read) {
  MutexLock lock(&mutex_);
  if (reading_ != nullptr && reading_->program.get() == &read) reading_ = nullptr;
}

absl::StatusOr<engine::OperationSpec> GroupImpl::Prepare(const Call& call) {
  SYNCOPATE_RETURN_IF_ERROR(worker->CheckProcess());
  SYNCOPATE_RETURN_IF_ERROR(worker::CheckCall(call, size(), self));
  const Patience patience = {.deadline_ns = MonotonicClock().NowNs() + TimeoutNs(call),
                             .prompt = worker::PromptStart::Wanted()};
  if (patience.prompt && WouldWait(call)) return worker::PromptStart::WouldWait();
  std::shared_ptr<const engine::CompiledProgram> own;
  if (!call.program.empty()) {
    // It depends on nothing of the group, so calls of other threads need not stay behind it.
    const std::shared_ptr<worker::ComingPlan> read = OrderOwn(call);
    if (const Waited waited = Await(*read, patience); waited != Waited::kOver) {
      MutexLock lock(&mutex_);
      return Instead(call, patience, waited, "the program that it brings was not read and proved");
    }
    ForgetReading(*read);
    SYNCOPATE_RETURN_IF_ERROR(read->result().status());
    own = read->result()->program;
  }
  MutexLock lock(&mutex_);
  if (const Waited waited = TakePlace(patience); waited != Waited::kOver) {
    return Instead(call, patience, waited, "earlier calls of the group had not begun");
  }
  absl::StatusOr<engine::OperationSpec> spec = PrepareInPlace(call, own, patience);
  LeavePlace();
  return spec;
}

absl::StatusOr<engine::OperationSpec> GroupImpl::PrepareInPlace(
    const Call& call, const std::shared_ptr<const engine::CompiledProgram>& own,
    const Patience& patience) {
  uint64_t planned_by = version;
  const int64_t number = calls_ + 1;
  if (world && worker->network) {
    mutex_.Unlock();
    const absl::Status reached = worker->ReachCall(number, patience.deadline_ns);
    if (reached.ok() && watch != nullptr) planned_by = watch->VersionFor(number);
    mutex_.Lock();
    SYNCOPATE_RETURN_IF_ERROR(reached);
  }
  for (;;) {
    if (group_ == nullptr) return Closed(call);
    if (IsLikeLast(call) && !Tunes()) break;
    SYNCOPATE_ASSIGN_OR_RETURN(const Missing missing, FindMissing(call, own, number, planned_by));
    if (missing.plan == nullptr) break;
    mutex_.Unlock();
    const Waited waited = Await(*missing.plan, patience);
    mutex_.Lock();
    if (waited != Waited::kOver) return Instead(call, patience, waited, missing.name);
  }
  calls_ = number;
  if (watch != nullptr && world) {
    mutex_.Unlock();
    watch->BeforeCall(number, call.data.elements * SizeOf(call.data.type));
    mutex_.Lock();
  }
  std::shared_ptr<std::atomic<int64_t>> took;
  absl::StatusOr<std::shared_ptr<const engine::CompiledProgram>> program =
      ProgramFor(call, own, number, planned_by, patience.deadline_ns, took);
  SYNCOPATE_RETURN_IF_ERROR(program.status());
  engine::OperationSpec spec{.group = group_,
                             .program = *std::move(program),
                             .data = call.data.data,
                             .type = call.data.type,
                             .op = Reduces(call.collective) ? call.op : ReduceOp::kSum,
                             .weight = worker::IsActive(call, self) ? call.weight : 0,
                             .priority = call.priority,
                             .deadline_ns = patience.deadline_ns};
  if (took != nullptr || odd_ != nullptr) {
    const int64_t begun_ns = took == nullptr ? 0 : MonotonicClock().NowNs();
    spec.completed = [took, begun_ns, odd = odd_, ended = call.ended](const absl::Status& status) {
      if (odd != nullptr && absl::IsFailedPrecondition(status)) odd->store(true);
      if (took != nullptr && status.ok()) took->store(MonotonicClock().NowNs() - begun_ns);
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

absl::StatusOr<GroupImpl::Missing> GroupImpl::FindMissing(
    const Call& call, const std::shared_ptr<const engine::CompiledProgram>& own, int64_t number,
    uint64_t network_version) {
  Missing missing;
  SYNCOPATE_ASSIGN_OR_RETURN(missing.plan, FindKind(call, own, network_version));
  if (missing.plan != nullptr) {
    const std::string algorithm = KeyOf(call, network_version).algorithm;
    missing.name = algorithm.empty()
                       ? "its plan was not made"
                       : absl::StrCat("its plan by algorithm ", algorithm, " was not made");
    return missing;
  }
  if (!Tunes()) return missing;
  plan::ProgramKey refined = last_->key;
  refined.chunk_bytes = tuner->NextSize(number, last_->key, last_->serving.chunk_bytes);
  if (refined.chunk_bytes == 0) return missing;
  missing.plan = plans_.Awaited(refined);
  missing.name =
      absl::StrCat("its plan with sub-chunks of ", refined.chunk_bytes, " bytes was not made");
  return missing;
}

absl::StatusOr<std::shared_ptr<const engine::CompiledProgram>> GroupImpl::ProgramFor(
    const Call& call, const std::shared_ptr<const engine::CompiledProgram>& own, int64_t number,
    uint64_t network_version, int64_t deadline_ns, std::shared_ptr<std::atomic<int64_t>>& took) {
  if (group_ == nullptr) return Closed(call);
  last_version_ = network_version;
  if (odd_ != nullptr && odd_->load(std::memory_order_relaxed)) plans_.Freeze();
  // Where the lock was released since nothing was missing, AwaitPlan() may have looked for another kind.
  std::shared_ptr<worker::ComingPlan> missing;
  if (watch != nullptr && world) {
    SYNCOPATE_ASSIGN_OR_RETURN(missing, FindKind(call, own, network_version));
  }
  if (missing != nullptr) {  // it was there just now, but too many others have come since
    return WithBlast(absl::ResourceExhaustedError(
                         absl::StrCat(Name(call.collective), ": its plan is not known any more")),
                     BlastRadius::kOperation);
  }
  if (last_own_ != nullptr) return last_own_;
  if (!worker::CallPlans::IsSettled(*last_, network_version)) {
    vote_deadline_ns_ = deadline_ns;
    SYNCOPATE_RETURN_IF_ERROR(plans_.BeforeCall(*last_, network_version, deadline_ns));
  }
  return Refined(*last_, number, took);
}

// Training makes the same call again and again, so the last one is compared field by field before a key
// is built and hashed.
bool GroupImpl::IsLikeLast(const Call& call) const {
  return (last_ != nullptr || last_own_ != nullptr) &&
         last_request_.collective == call.collective &&
         last_request_.elements == call.data.elements &&
         last_element_bytes_ == SizeOf(call.data.type) && last_algorithm_ == call.algorithm &&
         last_text_ == call.program &&
         (!HasRoot(call.collective) || last_request_.root == call.root) &&
         (call.collective != Collective::kSendReceive || last_request_.target == call.target) &&
         last_blocks_ == call.block_elements && last_active_ == call.active;
}

absl::StatusOr<std::shared_ptr<worker::ComingPlan>> GroupImpl::FindKind(
    const Call& call, const std::shared_ptr<const engine::CompiledProgram>& own,
    uint64_t network_version) {
  if (IsLikeLast(call)) return nullptr;
  const plan::ProgramKey key = KeyOf(call, network_version);
  last_ = nullptr;
  last_own_ = own;
  while (last_own_ == nullptr && last_ == nullptr) {
    SYNCOPATE_ASSIGN_OR_RETURN(last_, plans_.KindOf(key));
    if (last_ != nullptr) break;
    if (auto missing = plans_.Awaited(key)) return missing;
  }
  last_request_ = key.request;
  last_element_bytes_ = key.element_bytes;
  last_algorithm_ = call.algorithm;
  last_text_ = call.program;
  last_blocks_ = call.block_elements;
  last_active_ = call.active;
  return nullptr;
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
