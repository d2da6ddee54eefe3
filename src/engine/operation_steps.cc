// The part of an operation that runs a program step by step, on any transport.
#include <algorithm>
#include <utility>

#include "engine/operation.h"

namespace syncopate::engine {

Operation::Outcome Operation::WorkSteps() {
  if (!begun_) {
    if (staged_ != nullptr) untaken_.assign(program().chunks(Space::kData), true);
    begun_ = true;
    for (uint32_t i = 0; i < waiting_for_.size(); ++i) {
      if (waiting_for_[i] == 0) running_.push_back(i);
    }
    if (steps_left_ == 0) FinishWork();
    return Outcome::kMoved;
  }
  if (spec_.group->port->optimistic()) {
    // The others may settle the operation while we work: they broke it, or gave us the result.
    const transport::GateState finish = session_->State(transport::Gate::kFinish);
    if (finish == transport::GateState::kBroken) return FailBroken(transport::Gate::kFinish);
    if (finish == transport::GateState::kPassed || session_->Held()) {
      if (!session_->TakeResult()) return Outcome::kBlocked;
      moved_ = ResultRange().first;
      state_ = State::kCopyingOut;
      return Outcome::kMoved;
    }
    if (steps_left_ == 0) return FinishWork() ? Outcome::kMoved : Outcome::kBlocked;
  }
  uint64_t budget = kQuantumBytes;
  Outcome outcome = Outcome::kBlocked;
  // Steps that others were waiting for follow at once: what a message sets off here goes out before
  // anything else is looked at.
  Outcome moved = Outcome::kWorked;
  while (moved != Outcome::kBlocked && !running_.empty() && budget > 0) {
    moved = Outcome::kBlocked;
    started_.clear();
    std::swap(started_, running_);
    for (const uint32_t index : started_) moved = std::max(moved, PollStep(index, budget));
    outcome = std::max(outcome, moved);
  }
  if (steps_left_ == 0) FinishWork();
  return outcome;
}

bool Operation::IsUntaken(Space space, uint32_t chunk, uint32_t count) const {
  if (untaken_.empty() || space != Space::kData) return false;
  const auto begin = untaken_.begin() + chunk;
  return std::all_of(begin, begin + count, [](bool untaken) { return untaken; });
}

// The factor of an average is applied here, on the way into the copy, so that steps only add.
bool Operation::TakeIn(Space space, uint32_t chunk, uint32_t count, uint64_t& budget) {
  if (untaken_.empty() || space != Space::kData) return true;
  for (uint32_t c = chunk; c < chunk + count; ++c) {
    if (!untaken_[c]) continue;
    if (budget == 0) return false;
    const uint64_t begin = program().begin(space, c);
    const uint64_t elements = program().begin(space, c + 1) - begin;
    CopyIn(begin, elements, factors_[static_cast<size_t>(self())]);
    untaken_[c] = false;
    budget -= std::min(budget, elements * element_bytes());
  }
  return true;
}

void Operation::Overwritten(Space space, uint32_t chunk, uint32_t count) {
  if (untaken_.empty() || space != Space::kData) return;
  std::fill(untaken_.begin() + chunk, untaken_.begin() + chunk + count, false);
}

// Moves step `index` forward; it stays in running_ unless it got done.
Operation::Outcome Operation::PollStep(uint32_t index, uint64_t& budget) {
  const CompiledProgram::StepPlan& plan = spec_.program->plan[index];
  const Step& step = plan.step;
  const uint64_t elements = program().size(step);
  const uint64_t begin = program().begin(step.space, step.chunk);
  std::byte* here = Base(step.space) + begin * element_bytes();
  if (step.kind == StepKind::kSend) {
    Outcome outcome = Outcome::kBlocked;
    if (step_moved_[index] == 0) {
      if (!TakeIn(step.space, step.chunk, step.count, budget)) {
        running_.push_back(index);
        return Outcome::kWorked;
      }
      step_moved_[index] = 1;  // offered
      session_->Offer(index, step.peer, here,
                      {step.space, begin * element_bytes(), elements * element_bytes()});
      outcome = Outcome::kMoved;
    }
    if (!session_->Consumed(step.peer, index, plan.match)) {
      running_.push_back(index);
      return outcome;
    }
    StepDone(index);
    return Outcome::kMoved;
  }
  const bool receives = step.kind == StepKind::kReceive || step.kind == StepKind::kReceiveReduce;
  const bool reduces = step.kind == StepKind::kReceiveReduce || step.kind == StepKind::kReduce;
  const std::byte* there =
      receives ? session_->Arrived(step.peer, plan.match,
                                   {plan.their_space, plan.their_begin * element_bytes(),
                                    elements * element_bytes()})
               : Base(step.source_space) +
                     program().begin(step.source_space, step.source_chunk) * element_bytes();
  if (there == nullptr || (budget == 0 && elements > 0)) {
    running_.push_back(index);
    return Outcome::kBlocked;
  }
  // The caller's data need not be copied first where it is only added to what comes.
  const std::byte* own = here;
  if (reduces && factors_[static_cast<size_t>(self())] == 1 &&
      IsUntaken(step.space, step.chunk, step.count)) {
    own = static_cast<const std::byte*>(spec_.data) + begin * element_bytes();
  } else if (reduces && !TakeIn(step.space, step.chunk, step.count, budget)) {
    running_.push_back(index);
    return Outcome::kWorked;
  }
  if (!receives && !TakeIn(step.source_space, step.source_chunk, step.count, budget)) {
    running_.push_back(index);
    return Outcome::kWorked;
  }
  uint64_t& moved = step_moved_[index];
  const uint64_t count =
      std::min(elements - moved, std::max<uint64_t>(budget / element_bytes(), 1));
  const size_t offset = moved * element_bytes();
  void* destination = here + offset;
  const FoldSource sources[2] = {{.data = own + offset}, {.data = there + offset}};
  // What has come to its place already stays there.
  if (reduces || destination != sources[1].data) {
    CountCopy(reduces ? CopyStage::kFolded : CopyStage::kCopied, count * element_bytes());
  }
  Fold(spec_.type, fold_op(), absl::MakeSpan(sources).subspan(reduces ? 0 : 1), {&destination, 1},
       count);
  moved += count;
  budget -= std::min(budget, count * element_bytes());
  if (moved < elements) {
    running_.push_back(index);
  } else {
    if (receives) session_->Consume(index, step.peer, plan.match);
    Overwritten(step.space, step.chunk, step.count);
    StepDone(index);
  }
  return Outcome::kWorked;
}

void Operation::StepDone(uint32_t index) {
  --steps_left_;
  for (uint32_t dependent : spec_.program->plan[index].dependents) {
    if (--waiting_for_[dependent] == 0) running_.push_back(dependent);
  }
}

}  // namespace syncopate::engine
