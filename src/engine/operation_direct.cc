// The parts of an operation in which members work in each other's memory: the one-shot, the
// exchange, and how a survivor does the share of a member that was lost in the middle of one.
#include <algorithm>
#include <cstddef>

#include "absl/status/statusor.h"
#include "base/status.h"
#include "engine/operation.h"

namespace syncopate::engine {

Operation::Outcome Operation::WorkOneShot() {
  absl::InlinedVector<FoldSource, 8> sources;
  for (int member : spec_.program->order) {
    sources.push_back({.data = memory_[static_cast<size_t>(member)],
                       .factor = factors_[static_cast<size_t>(member)]});
  }
  void* destination = spec_.data;
  CountCopy(CopyStage::kFolded, data_bytes());
  Fold(spec_.type, fold_op(), sources, {&destination, 1}, program().elements());
  FinishWork();
  return Outcome::kWorked;
}

// The fold of a share is written to one copy where members pull, else to the data of all members.
absl::InlinedVector<void*, 8> Operation::Destinations(int member, uint64_t begin) const {
  const size_t offset = begin * element_bytes();
  if (pulls_) return {memory_[static_cast<size_t>(member)] + offset};
  absl::InlinedVector<void*, 8> destinations;
  for (std::byte* memory : memory_) destinations.push_back(memory + offset);
  return destinations;
}

// The order of the sources is the program's and not that of the ranks, so that a survivor that does
// the rest of a lost member's share gets the same bits.
void Operation::FoldShare(int member, uint64_t begin, uint64_t count) {
  absl::InlinedVector<FoldSource, 8> sources;
  for (int from : spec_.program->shares[static_cast<size_t>(member)].order) {
    sources.push_back({.data = memory_[static_cast<size_t>(from)] + begin * element_bytes(),
                       .factor = factors_[static_cast<size_t>(from)]});
  }
  const absl::InlinedVector<void*, 8> destinations = Destinations(member, begin);
  CountCopy(CopyStage::kFolded, count * element_bytes() * destinations.size());
  Fold(spec_.type, fold_op(), sources, destinations, count, &NotesOf(member).journal, begin);
}

// The acquire pairs with the release of the folding member: results below the position are visible.
uint64_t Operation::FoldedUpTo(int member) {
  return FoldJournal::Position(NotesOf(member).journal.state.load(std::memory_order_acquire));
}

// At most a quantum is taken from each member in one poll, so that the own share goes on in
// between.
bool Operation::TakeResults() {
  bool any = false;
  for (int member = 0; member < members(); ++member) {
    uint64_t& taken = taken_[static_cast<size_t>(member)];
    const uint64_t quantum = kQuantumBytes / element_bytes();
    const uint64_t upto = std::min(FoldedUpTo(member), taken + quantum);
    if (upto <= taken) continue;
    const size_t offset = taken * element_bytes();
    Copy(static_cast<std::byte*>(spec_.data) + offset,
         memory_[static_cast<size_t>(member)] + offset, (upto - taken) * element_bytes(),
         CopyStage::kCopied);
    taken = upto;
    any = true;
  }
  return any;
}

Operation::Outcome Operation::WorkExchange() {
  const auto& shares = spec_.program->shares;
  const CompiledProgram::Share& share = shares[static_cast<size_t>(self())];
  Outcome outcome = Outcome::kBlocked;
  if (moved_ < share.end) {
    // A fold reads the data of every member, so the quantum counts the bytes of all of them.
    const uint64_t quantum = std::max<uint64_t>(
        kQuantumBytes / (element_bytes() * static_cast<uint64_t>(members())), 4096);
    const uint64_t count = std::min(quantum, share.end - moved_);
    FoldShare(self(), moved_, count);
    moved_ += count;
    outcome = Outcome::kWorked;
    if (pulls_) session_->Nudge();  // the others may wait for these results
  }
  bool all_taken = true;
  if (pulls_) {
    if (TakeResults()) outcome = Outcome::kWorked;
    for (size_t member = 0; member < shares.size(); ++member) {
      all_taken = all_taken && taken_[member] >= shares[member].end;
    }
  }
  if (moved_ == share.end && all_taken) {
    FinishWork();
    return Outcome::kWorked;
  }
  return outcome;
}

// At most one survivor does a lost member's share: the exchange of `rescuer` decides which, and it
// may be taken over only from a rescuer that is lost itself. The journal then tells how far the
// share was folded; the block that was being written is written again from the journal, since its
// sources may already be overwritten.
bool Operation::Rescue(int member, absl::Span<const transport::Loss> losses) {
  ShareNotes& notes = NotesOf(member);
  uint32_t holder = notes.rescuer.load(std::memory_order_acquire);
  const uint32_t mine = static_cast<uint32_t>(self()) + 1;
  if (holder != mine) {
    if (holder != 0 && !IsLost(static_cast<int>(holder) - 1, losses)) return false;
    if (!notes.rescuer.compare_exchange_strong(holder, mine)) return false;
  }
  const CompiledProgram::Share& share = spec_.program->shares[static_cast<size_t>(member)];
  const absl::StatusOr<uint64_t> done =
      ReplayJournal(&notes.journal, spec_.type, Destinations(member, share.begin),
                    share.end - share.begin, share.begin);
  if (!done.ok()) {
    Fail(WithBlast(At(Describe(), done.status()), BlastRadius::kJob), /*breaks_group=*/true);
    return false;
  }
  const uint64_t from = share.begin + *done;
  FoldShare(member, from, share.end - from);
  session_->Enter(transport::Gate::kFinish, member);
  return true;
}

}  // namespace syncopate::engine
