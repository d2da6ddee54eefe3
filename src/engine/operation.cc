// The way of an operation from its queue to its end, where all goes well. What it does when a member
// is lost or late is in operation_troubles.cc, how it runs a program in operation_steps.cc and
// operation_direct.cc.
#include "engine/operation.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/parse.h"
#include "base/status.h"

namespace syncopate::engine {
namespace {

// Copies go through the cache as long as all members' data together is no larger than this.
constexpr uint64_t kCachedBytesMax = 16 << 20;

using Shape = CompiledProgram::Shape;

// The shapes of direct memory need a transport by which members reach each other's memory; on any
// other the program runs step by step.
Shape ShapeOn(const transport::GroupPort& port, Shape shape) {
  return port.direct() || shape == Shape::kEmpty ? shape : Shape::kSteps;
}

// Without a reduction nothing can be undone, so the end is loose. Where every member gets the whole
// result, one that has it can give it to one that missed it. All other reductions are awaited.
transport::Ending EndingOf(const Program& program) {
  if (!Reduces(program.collective)) return transport::Ending::kLoose;
  const bool all_get_all = program.collective == Collective::kAllReduce &&
                           program.active.size() == static_cast<size_t>(program.workers);
  return all_get_all ? transport::Ending::kShared : transport::Ending::kAwaited;
}

// What members compare at the start gate: the program, and what it is applied to.
uint64_t Mix(uint64_t digest, DataType type, ReduceOp op) {
  return (digest ^ (static_cast<uint64_t>(type) << 8 | static_cast<uint64_t>(op))) *
         0x9e3779b97f4a7c15u;
}

}  // namespace

Operation::Operation(OperationSpec spec, uint64_t sequence, transport::Transport& transport,
                     ScratchPool& pool, const Clock& clock)
    : spec_(std::move(spec)),
      sequence_(sequence),
      transport_(transport),
      pool_(pool),
      clock_(clock),
      shape_(ShapeOn(*spec_.group->port, spec_.program->shape)),
      ending_(EndingOf(program())),
      // Weights must be known before anything is added; and without data, meeting is all there is.
      awaits_start_(!spec_.group->port->optimistic() || shape_ != Shape::kSteps ||
                    spec_.op == ReduceOp::kWeightedAverage) {
  for (const uint64_t elements : spec_.program->incoming) {
    incoming_.push_back(elements * element_bytes());
  }
}

Operation::~Operation() { Retire(); }

// Gives memory and session back at once: a caller may keep its handle, and so this object, for
// long.
void Operation::Retire() {
  state_ = State::kRetired;
  session_.reset();
  if (staged_ != nullptr) pool_.Give(std::exchange(staged_, nullptr), data_bytes());
  if (scratch_ != nullptr) pool_.Give(std::exchange(scratch_, nullptr), scratch_bytes());
}

std::string Operation::Describe() const {
  return absl::StrCat(Name(program().collective), " ", sequence_, " of workers ",
                      FormatRanks(spec_.group->members));
}

FoldOp Operation::fold_op() const {
  switch (spec_.op) {
    case ReduceOp::kMin:
      return FoldOp::kMin;
    case ReduceOp::kMax:
      return FoldOp::kMax;
    case ReduceOp::kProduct:
      return FoldOp::kProduct;
    case ReduceOp::kSum:
    case ReduceOp::kAverage:
    case ReduceOp::kWeightedAverage:
      break;
  }
  return FoldOp::kSum;
}

Operation::Outcome Operation::Poll() {
  switch (state_) {
    case State::kQueued:
      return Prepare();
    case State::kStaging:
      return Stage();
    case State::kEntering:
      return EnterStart();
    case State::kStarting:
      return AwaitStart();
    case State::kWorking:
      return Work();
    case State::kFinishing:
      return AwaitFinish();
    case State::kCopyingOut:
      return CopyOut();
    case State::kLingering:
      // Peers read our memory until the finish gate has passed or broken.
      if (session_->State(transport::Gate::kFinish) == transport::GateState::kOpen)
        return Outcome::kBlocked;
      Retire();
      return Outcome::kMoved;
    case State::kRetired:
      break;
  }
  return Outcome::kBlocked;
}

// Takes memory and opens the session. It may be called again and again until the session can be
// opened, so memory that was taken before is kept.
Operation::Outcome Operation::Prepare() {
  if (!spec_.group->failure.ok()) return Fail(spec_.group->failure, /*breaks_group=*/false);
  const bool reduces = Reduces(program().collective);
  const bool active = spec_.program->active;
  const bool reachable = active && transport_.Owns(spec_.data, data_bytes());
  // Steps of a reduction run on a copy, so that the data is untouched until all have finished. A
  // member that is not active stages nothing: it has no data, or data that must not be read.
  const bool stage = active && ((shape_ == Shape::kExchange && !reachable) ||
                                (shape_ == Shape::kSteps && (reduces || !reachable)));
  work_ = active ? static_cast<std::byte*>(spec_.data) : nullptr;
  // A lack of memory is reported only after the session is open: the others wait at its start gate
  // and must learn that this member will not come.
  absl::Status memory;
  auto take = [&](uint64_t bytes) -> std::byte* {
    absl::StatusOr<std::byte*> taken = pool_.Take(bytes);
    if (taken.ok()) return *taken;
    memory = taken.status();
    return nullptr;
  };
  if (stage && staged_ == nullptr) staged_ = take(data_bytes());
  if (stage) work_ = staged_;
  if (shape_ != Shape::kEmpty && scratch_bytes() > 0 && scratch_ == nullptr && memory.ok()) {
    scratch_ = take(scratch_bytes());
  }
  absl::StatusOr<std::unique_ptr<transport::Session>> session = spec_.group->port->Open(
      {.sequence = sequence_,
       .digest = Mix(spec_.program->digest, spec_.type, spec_.op),
       .weight = spec_.weight,
       .staged = stage,
       .ending = ending_,
       .awaits_start = awaits_start_,
       .hopeless = spec_.hopeless,
       .priority = spec_.priority,
       .incoming = &incoming_,
       // Peers of a one-shot read scratch only, so the caller's data need not be in their reach.
       .data = shape_ == Shape::kOneShot ? nullptr : work_,
       .data_bytes = shape_ == Shape::kOneShot ? 0 : data_bytes(),
       .scratch = scratch_,
       .scratch_bytes = scratch_bytes(),
       .steps = shape_ == Shape::kSteps ? static_cast<uint32_t>(spec_.program->plan.size()) : 0});
  if (!session.ok()) return Outcome::kBlocked;  // an earlier operation must retire first
  session_ = *std::move(session);
  if (!memory.ok()) {
    // The others need not wait for us.
    session_->Break(transport::Gate::kStart, transport::BreakReason::kTime);
    return Fail(At(Describe(), memory), /*breaks_group=*/true);
  }
  if (spec_.hopeless) {
    session_->Break(transport::Gate::kStart, transport::BreakReason::kLoss);
    state_ = State::kStarting;
    return AwaitStart();
  }
  if (shape_ == Shape::kExchange) {
    // Before the start gate nobody reads the notes, so relaxed stores are enough.
    ShareNotes& notes = NotesOf(self());
    notes.journal.state.store(
        FoldJournal::Pack(spec_.program->shares[static_cast<size_t>(self())].begin, 0, 0),
        std::memory_order_relaxed);
    notes.rescuer.store(0, std::memory_order_relaxed);
  }
  state_ = State::kStaging;
  return Stage();
}

bool Operation::past_cache() const {
  return data_bytes() * static_cast<uint64_t>(members()) > kCachedBytesMax;
}

// Of data as large as the cache, little is still there when it is read again: do not let it push
// out the rest.
void Operation::Copy(void* to, const void* from, size_t bytes, CopyStage stage) const {
  CountCopy(stage, bytes);
  if (past_cache()) {
    StreamCopy(to, from, bytes);
  } else {
    std::memcpy(to, from, bytes);
  }
}

void Operation::CopyIn(uint64_t begin, uint64_t count, double factor) {
  const size_t offset = begin * element_bytes();
  const std::byte* from = static_cast<const std::byte*>(spec_.data) + offset;
  void* to = staged_ + offset;
  if (factor == 1) {
    Copy(to, from, count * element_bytes(), CopyStage::kStaged);
  } else {
    CountCopy(CopyStage::kStaged, count * element_bytes());
    const FoldSource source = {.data = from, .factor = factor};
    Fold(spec_.type, FoldOp::kSum, {&source, 1}, {&to, 1}, count);
  }
}

// What peers will read as soon as the start gate passes is put where they reach it.
Operation::Outcome Operation::Stage() {
  if (shape_ == Shape::kOneShot) {
    CountCopy(CopyStage::kStaged, data_bytes());
    std::memcpy(scratch_, spec_.data, data_bytes());
  } else if (shape_ == Shape::kExchange && staged_ != nullptr) {
    const uint64_t count = std::min(kQuantumBytes / element_bytes(), program().elements() - moved_);
    CopyIn(moved_, count, 1);
    moved_ += count;
    if (moved_ < program().elements()) return Outcome::kWorked;
    moved_ = 0;
  }
  state_ = State::kEntering;
  return EnterStart();
}

Operation::Outcome Operation::EnterStart() {
  if (!session_->Enter(transport::Gate::kStart, self())) return Outcome::kBlocked;
  state_ = State::kStarting;
  // Where the others are there already, or need not be waited for, work begins in this very poll.
  AwaitStart();
  return Outcome::kMoved;
}

absl::Status Operation::OddityStatus(int member, uint64_t digest) const {
  return absl::FailedPreconditionError(absl::StrCat(
      "worker ", spec_.group->members[static_cast<size_t>(member)], " runs something else (digest ",
      absl::Hex(digest, absl::kZeroPad16), ") than this worker (", program().algorithm, ", digest ",
      absl::Hex(Mix(spec_.program->digest, spec_.type, spec_.op), absl::kZeroPad16),
      "): all members of a group must make the same calls in the same order"));
}

Operation::Outcome Operation::AwaitStart() {
  if (spec_.hopeless) {
    // The others may have passed the start gate, since they did not wait there. Nobody passes the other one.
    for (const transport::Gate gate : {transport::Gate::kStart, transport::Gate::kFinish}) {
      if (session_->State(gate) == transport::GateState::kBroken) return FailBroken(gate);
    }
    return Outcome::kBlocked;
  }
  switch (session_->State(transport::Gate::kStart)) {
    case transport::GateState::kOpen:
      return Outcome::kBlocked;
    case transport::GateState::kBroken:
      return FailBroken(transport::Gate::kStart);
    case transport::GateState::kPassed:
      break;
  }
  if (spec_.completed) times_.first_ns = clock_.NowNs();
  if (absl::Status status = BeginWork(); !status.ok()) {
    // Every member finds the same fault, so the group stays in step and can be used again.
    session_->Enter(transport::Gate::kFinish, self());
    Complete(WithBlast(At(Describe(), status), BlastRadius::kOperation));
    state_ = State::kLingering;
    return Outcome::kMoved;
  }
  state_ = State::kWorking;
  return Work();
}

// All members must run the same program on the same kind of data; their weights become factors.
absl::Status Operation::ReadHellos() {
  const uint64_t digest = Mix(spec_.program->digest, spec_.type, spec_.op);
  double sum = 0;
  // Pulling pays where the results would not stay in the cache until all is folded.
  pulls_ = shape_ == Shape::kExchange && past_cache();
  factors_.resize(static_cast<size_t>(members()));
  const std::vector<int>& active = program().active;
  for (int member = 0; member < members(); ++member) {
    // A member that does not wait at the start gate has no hellos to read. It needs none: there all
    // weights are 1, and the transport reports a member with another digest (FindOddity).
    const transport::Hello hello =
        awaits_start_ ? session_->HelloOf(member) : transport::Hello{.digest = digest, .weight = 1};
    if (hello.digest != digest) {
      return OddityStatus(member, hello.digest);
    }
    pulls_ = pulls_ && hello.staged;
    if (!std::binary_search(active.begin(), active.end(), member)) continue;
    const double weight = spec_.op == ReduceOp::kWeightedAverage ? hello.weight : 1;
    factors_[static_cast<size_t>(member)] = weight;
    sum += weight;
  }
  const bool scales = averages() && IsFloating(spec_.type);
  if (scales && !(sum > 0 && std::isfinite(sum))) {
    return absl::InvalidArgumentError(absl::StrCat("the weights of all active members add up to ",
                                                   sum, "; give at least one a weight"));
  }
  // Integers are averaged by a division of the sum at the end (CopyOut): factors would truncate
  // every contribution.
  for (double& factor : factors_) factor = scales ? factor / sum : 1;
  return absl::OkStatus();
}

absl::Status Operation::BeginWork() {
  SYNCOPATE_RETURN_IF_ERROR(ReadHellos());
  if (shape_ == Shape::kOneShot || shape_ == Shape::kExchange) {
    const Space space = shape_ == Shape::kOneShot ? Space::kScratch : Space::kData;
    memory_.resize(static_cast<size_t>(members()));
    for (int member = 0; member < members(); ++member) {
      std::byte* memory = session_->Memory(member, space);
      if (memory == nullptr) {
        return absl::InternalError(absl::StrCat("worker ",
                                                spec_.group->members[static_cast<size_t>(member)],
                                                " announced memory that it does not have"));
      }
      memory_[static_cast<size_t>(member)] = memory;
    }
    moved_ = 0;
    if (shape_ == Shape::kExchange) {
      const auto& shares = spec_.program->shares;
      moved_ = shares[static_cast<size_t>(self())].begin;
      for (const CompiledProgram::Share& share : shares) taken_.push_back(share.begin);
    }
  }
  if (shape_ == Shape::kSteps) {
    const auto& plan = spec_.program->plan;
    steps_left_ = static_cast<uint32_t>(plan.size());
    waiting_for_.resize(plan.size());
    step_moved_.resize(plan.size());
    for (size_t i = 0; i < plan.size(); ++i) {
      waiting_for_[i] = static_cast<uint32_t>(plan[i].step.after.size());
    }
  }
  return absl::OkStatus();
}

Operation::Outcome Operation::Work() {
  switch (shape_) {
    case Shape::kEmpty:
      return FinishWork() ? Outcome::kMoved : Outcome::kBlocked;
    case Shape::kOneShot:
      return WorkOneShot();
    case Shape::kExchange:
      return WorkExchange();
    case Shape::kSteps:
      return WorkSteps();
  }
  return Outcome::kBlocked;
}

// Returns false if the finish gate cannot be entered yet, since the operation is being settled with
// the others.
bool Operation::FinishWork() {
  // Chunks that no step has touched still hold the caller's own values, which are their result.
  if (const auto [begin, end] = ResultRange(); begin < end) {
    uint64_t budget = data_bytes();
    for (uint32_t c = 0; c < untaken_.size(); ++c) {
      if (program().begin(Space::kData, c) < end && program().begin(Space::kData, c + 1) > begin) {
        TakeIn(Space::kData, c, 1, budget);
      }
    }
  }
  if (!session_->Enter(transport::Gate::kFinish, self())) return false;
  moved_ = ResultRange().first;
  // A one-shot's result is in the caller's own data; steps that reduce nothing cannot be undone; a
  // result that all members get can be given to one that missed it. All others wait for the gate.
  const bool shared = spec_.group->port->optimistic() && ending_ == transport::Ending::kShared;
  const bool waits = shape_ == Shape::kExchange ||
                     (shape_ == Shape::kSteps && Reduces(program().collective) && !shared);
  state_ = waits ? State::kFinishing : State::kCopyingOut;
  if (waits) {
    AwaitFinish();
  } else {
    CopyOut();
  }
  return true;
}

Operation::Outcome Operation::AwaitFinish() {
  switch (session_->State(transport::Gate::kFinish)) {
    case transport::GateState::kOpen:
      return Outcome::kBlocked;
    case transport::GateState::kBroken:
      return FailBroken(transport::Gate::kFinish);
    case transport::GateState::kPassed:
      break;
  }
  state_ = State::kCopyingOut;
  return CopyOut();
}

std::pair<uint64_t, uint64_t> Operation::ResultRange() const {
  const Program& p = program();
  const auto place = std::find(p.active.begin(), p.active.end(), self());
  const std::pair<uint64_t, uint64_t> none = {0, 0}, all = {0, p.elements()};
  if (place == p.active.end()) return none;
  const size_t index = static_cast<size_t>(place - p.active.begin());
  switch (p.collective) {
    case Collective::kReduce:
    case Collective::kGather:
      return self() == p.root ? all : none;
    case Collective::kSendReceive:
      return self() == p.target ? all : none;
    case Collective::kReduceScatter:
    case Collective::kScatter:
      return {p.data_bounds[p.blocks[index]], p.data_bounds[p.blocks[index + 1]]};
    default:
      return all;
  }
}

// Brings the result from our copy to the caller's data, and does the division of an average of
// integers.
Operation::Outcome Operation::CopyOut() {
  const uint64_t end = ResultRange().second;
  const bool copies = staged_ != nullptr && !pulls_;
  const int contributions = static_cast<int>(program().active.size());
  const bool divides =
      averages() && !IsFloating(spec_.type) && Reduces(program().collective) && contributions > 1;
  Outcome outcome = Outcome::kMoved;
  if ((copies || divides) && moved_ < end) {
    const uint64_t count = std::min(kQuantumBytes / element_bytes(), end - moved_);
    std::byte* to = static_cast<std::byte*>(spec_.data) + moved_ * element_bytes();
    if (copies) {
      Copy(to, work_ + moved_ * element_bytes(), count * element_bytes(), CopyStage::kCopied);
    }
    if (divides) Divide(spec_.type, to, count, contributions);
    moved_ += count;
    outcome = Outcome::kWorked;
    if (moved_ < end) return outcome;
  }
  NoteEnd();
  Complete(absl::OkStatus());
  state_ = State::kLingering;
  if (session_->State(transport::Gate::kFinish) == transport::GateState::kPassed) Retire();
  return outcome;
}

// A member that has not waited at the start gate may have begun long before others.
void Operation::NoteEnd() {
  if (!spec_.completed) return;
  times_.last_ns = clock_.NowNs();
  if (!awaits_start_) times_.first_ns = std::max(times_.first_ns, session_->LastBegunNs());
}

void Operation::Complete(absl::Status status) {
  // The release publishes status_ and the caller's data to the threads that see done().
  status_ = std::move(status);
  if (spec_.completed) spec_.completed(status_);
  done_.store(true, std::memory_order_release);
}

}  // namespace syncopate::engine
