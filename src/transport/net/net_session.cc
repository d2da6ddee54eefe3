#include "transport/net/net_session.h"

#include <utility>

namespace syncopate::transport::net {

NetSession::NetSession(const NetPort& port, NetGroup& group, NetOperation& operation,
                       std::unique_ptr<Session> local, uint64_t prompt_bytes)
    : port_(port),
      transport_(port.transport()),
      group_(group),
      operation_(operation),
      sequence_(operation.sequence),
      prompt_(operation.spec.data_bytes >= prompt_bytes ||
              operation.spec.ending == Ending::kAwaited),
      local_(std::move(local)) {}

NetSession::~NetSession() {
  if (local_ != nullptr && local_->State(Gate::kFinish) != GateState::kPassed) {
    local_->Break(Gate::kStart, BreakReason::kTime);
    local_->Break(Gate::kFinish, BreakReason::kTime);
  }
  local_.reset();
  MutexLock lock(&transport_.mutex());
  transport_.core().End(group_, sequence_);
}

bool NetSession::Enter(Gate gate, int member) {
  if (member == port_.self()) local_wanted_[static_cast<size_t>(gate)] = local_ != nullptr;
  EnterLocal();
  MutexLock lock(&transport_.mutex());
  if (member != port_.self()) return true;  // nobody does another's part here
  const bool entered = group_.gates->Enter(sequence_, gate, prompt_);
  transport_.core().Pump(group_);
  return entered;
}

GateState NetSession::State(Gate gate) {
  EnterLocal();
  MutexLock lock(&transport_.mutex());
  return group_.gates->State(sequence_, gate);
}

// What a loss breaks, the members settle when they hear of it.
GateState NetSession::Break(Gate gate, BreakReason why) {
  MutexLock lock(&transport_.mutex());
  const GateState state = group_.gates->State(sequence_, gate);
  if (state != GateState::kOpen || why == BreakReason::kLoss) return state;
  group_.gates->Ask(sequence_);
  transport_.core().Pump(group_);
  return group_.gates->State(sequence_, gate);
}

Session::Failure NetSession::WhyBroken(Gate) {
  MutexLock lock(&transport_.mutex());
  return group_.gates->FailureOf(sequence_);
}

bool NetSession::Held() {
  MutexLock lock(&transport_.mutex());
  return group_.gates->Held(sequence_);
}

bool NetSession::TakeResult() {
  MutexLock lock(&transport_.mutex());
  return transport_.core().TakeResult(group_, operation_);
}

int64_t NetSession::LastBegunNs() {
  MutexLock lock(&transport_.mutex());
  return operation_.last_begun_ns;
}

std::optional<Session::Oddity> NetSession::FindOddity() {
  MutexLock lock(&transport_.mutex());
  const auto oddity = group_.gates->OddityOf(sequence_);
  if (!oddity) return std::nullopt;
  return Oddity{.member = oddity->member, .digest = oddity->digest};
}

bool NetSession::Entered(Gate gate, int member) {
  MutexLock lock(&transport_.mutex());
  return group_.gates->Entered(sequence_, gate, member);
}

Hello NetSession::HelloOf(int member) {
  MutexLock lock(&transport_.mutex());
  return group_.gates->HelloOf(sequence_, member);
}

void NetSession::Offer(uint32_t step, int to, const std::byte* bytes, Extent where) {
  if (const int local = LocalIndex(to); local >= 0) {
    local_->Offer(step, local, bytes, where);
    return;
  }
  MutexLock lock(&transport_.mutex());
  transport_.core().Offer(group_, operation_, step, to, bytes, where.bytes);
}

const std::byte* NetSession::Arrived(int from, uint32_t their_step, Extent where) {
  if (const int local = LocalIndex(from); local >= 0) {
    return LocalReady() ? local_->Arrived(local, their_step, where) : nullptr;
  }
  MutexLock lock(&transport_.mutex());
  return transport_.core().Arrived(group_, operation_, from, their_step, where.bytes);
}

void NetSession::Consume(uint32_t step, int from, uint32_t their_step) {
  if (const int local = LocalIndex(from); local >= 0) {
    local_->Consume(step, local, their_step);
    return;
  }
  MutexLock lock(&transport_.mutex());
  transport_.core().Consume(operation_, group_.members[static_cast<size_t>(from)], their_step);
}

bool NetSession::Consumed(int to, uint32_t step, uint32_t their_step) {
  if (const int local = LocalIndex(to); local >= 0) {
    return LocalReady() && local_->Consumed(local, step, their_step);
  }
  MutexLock lock(&transport_.mutex());
  return transport_.core().Sent(operation_, step, group_.members[static_cast<size_t>(to)]);
}

int NetSession::LocalIndex(int member) const {
  return local_ == nullptr ? -1 : port_.LocalIndex(member);
}

void NetSession::EnterLocal() {
  for (const Gate gate : {Gate::kStart, Gate::kFinish}) {
    bool& wanted = local_wanted_[static_cast<size_t>(gate)];
    if (!wanted) continue;
    wanted = !local_->Enter(gate, port_.LocalIndex(port_.self()));
  }
}

bool NetSession::LocalReady() {
  if (local_ready_) return true;
  EnterLocal();
  if (local_->State(Gate::kStart) != GateState::kPassed) return false;
  for (size_t member = 0; member < port_.size(); ++member) {
    if (LocalIndex(static_cast<int>(member)) < 0) continue;
    const uint64_t digest = local_->HelloOf(LocalIndex(static_cast<int>(member))).digest;
    if (digest == operation_.spec.digest) continue;
    MutexLock lock(&transport_.mutex());
    group_.gates->Ask(sequence_, static_cast<int>(member), digest);
    transport_.core().Pump(group_);
    return false;  // for ever: it will be settled as broken
  }
  local_ready_ = true;
  MutexLock lock(&transport_.mutex());
  transport_.core().NoteBegun(operation_);
  return true;
}

}  // namespace syncopate::transport::net
