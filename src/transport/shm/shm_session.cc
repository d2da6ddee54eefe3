#include "transport/shm/shm_session.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace syncopate::transport::shm {
namespace {

constexpr uint64_t kBroken = uint64_t{1} << 48;
constexpr uint64_t kMembers = kBroken - 1;
constexpr uint64_t kForLoss = uint64_t{1} << 49;
constexpr uint64_t kFinishGate = uint64_t{1} << 50;  // in GroupEntry::failure only

static_assert(limits::kLocalWorkersMax <= 48);

}  // namespace

std::optional<uint32_t> FlagHeap::Take(uint32_t count) {
  for (auto run = free_.begin(); run != free_.end(); ++run) {
    if (run->second < count) continue;
    const uint32_t first = run->first;
    run->first += count;
    run->second -= count;
    if (run->second == 0) free_.erase(run);
    return first;
  }
  return std::nullopt;
}

void FlagHeap::Give(uint32_t first, uint32_t count) {
  auto after = std::lower_bound(free_.begin(), free_.end(), std::make_pair(first, 0u));
  after = free_.insert(after, {first, count});
  const auto next = std::next(after);
  if (next != free_.end() && after->first + after->second == next->first) {
    after->second += next->second;
    free_.erase(next);
  }
  if (after != free_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == after->first) {
      before->second += after->second;
      free_.erase(after);
    }
  }
}

class ShmSession final : public Session {
 public:
  ShmSession(ShmGroupPort& port, const SessionSpec& spec, uint32_t heap_flag)
      : port_(port),
        peers_(port.context_.peers),
        sequence_(spec.sequence),
        slot_index_(static_cast<int>(spec.sequence % kSlots)),
        gate_generation_((port.first_generation_ + 1 + spec.sequence / kSlots) &
                         (kGenerations - 1)),
        data_bytes_(spec.data_bytes),
        scratch_bytes_(spec.scratch_bytes),
        entries_(port.members_.size(), nullptr) {
    Slot& slot = SlotOf(port.self_);
    const Arena& arena = peers_.arena();
    auto offset = [&](const std::byte* memory, uint64_t bytes) {
      return memory != nullptr && arena.Owns(memory, bytes)
                 ? static_cast<uint64_t>(memory - arena.memory().data())
                 : kNowhere;
    };
    slot.digest = spec.digest;
    slot.weight = spec.weight;
    slot.data_offset = offset(spec.data, spec.data_bytes);
    slot.scratch_offset = offset(spec.scratch, spec.scratch_bytes);
    slot.generation = ++port.context_.generation;
    slot.heap_flag = heap_flag;
    slot.steps = spec.steps;
    slot.staged = spec.staged ? 1 : 0;
    slot.sequence.store(sequence_ + 1, std::memory_order_release);
    port.free_for_[slot_index_] = ShmGroupPort::kBusy;
  }

  ~ShmSession() override {
    // Peers that have not finished may still read what our slot says.
    if (State(Gate::kFinish) != GateState::kPassed) port_.keep_entry_ = true;
    Slot& slot = SlotOf(port_.self_);
    if (slot.steps > kInlineFlags) port_.context_.heap.Give(slot.heap_flag, slot.steps);
    port_.free_for_[slot_index_] = sequence_ + kSlots;
  }

  bool Enter(Gate gate, int member) override {
    std::atomic<uint64_t>* word = GateWordOf(gate);
    if (word == nullptr) return false;
    finishing_ |= gate == Gate::kFinish && member == port_.self_;
    const uint64_t bit = uint64_t{1} << member;
    uint64_t seen = word->load(std::memory_order_acquire);
    while (Judge(seen) == GateState::kOpen) {
      if (FirstMemberIsGone()) return false;
      const uint64_t next = gate_generation_ << kGenerationShift | MembersIn(seen) | bit;
      if (seen == next) return true;
      if (word->compare_exchange_weak(seen, next, std::memory_order_acq_rel)) {
        if ((next & kMembers) == port_.everybody_) port_.RingOthers();
        return true;
      }
    }
    return true;
  }

  GateState State(Gate gate) override {
    // This is what waiting members ask all the time.
    GroupEntry* entry = port_.EntryOf(0);
    if (entry == nullptr) return shut_ ? GateState::kBroken : GateState::kOpen;
    const uint64_t word = WordIn(*entry, gate).load(std::memory_order_acquire);
    // Asked after the word was read: where the first member had not left by then, the word is ours.
    if (FirstMemberIsGone()) return shut_ ? GateState::kBroken : GateState::kOpen;
    return Judge(word);
  }

  GateState Break(Gate gate, BreakReason why) override {
    std::atomic<uint64_t>* word = GateWordOf(gate);
    if (word == nullptr) return Shut(why);
    const uint64_t broken = why == BreakReason::kLoss ? kBroken | kForLoss : kBroken;
    uint64_t seen = word->load(std::memory_order_acquire);
    while (Judge(seen) == GateState::kOpen) {
      if (FirstMemberIsGone()) return Shut(why);
      const uint64_t next = gate_generation_ << kGenerationShift | broken | MembersIn(seen);
      if (word->compare_exchange_weak(seen, next, std::memory_order_acq_rel)) {
        NoteFailure(gate, next);
        port_.RingOthers();
        return GateState::kBroken;
      }
    }
    return Judge(seen);
  }

  Failure WhyBroken(Gate gate) override {
    const std::atomic<uint64_t>* word = GateWordOf(gate);
    const uint64_t failure = word == nullptr || shut_
                                 ? (shut_for_loss_ ? kForLoss : 0)
                                 : NoteFailure(gate, word->load(std::memory_order_acquire));
    Failure why = {.for_loss = (failure & kForLoss) != 0,
                   .gate = (failure & kFinishGate) != 0 ? Gate::kFinish : Gate::kStart};
    for (int member = 0; member < static_cast<int>(port_.members_.size()); ++member) {
      if ((failure >> member & 1) == 0) why.missing.push_back(member);
    }
    return why;
  }

  bool Entered(Gate gate, int member) override {
    const std::atomic<uint64_t>* word = GateWordOf(gate);
    if (word == nullptr) return false;
    const uint64_t seen = word->load(std::memory_order_acquire);
    return Judge(seen) == GateState::kPassed || (MembersIn(seen) >> member & 1) != 0;
  }

  Hello HelloOf(int member) override {
    const Slot& slot = SlotOf(member);
    return {.digest = slot.digest, .weight = slot.weight, .staged = slot.staged != 0};
  }

  void Offer(uint32_t step, int to, const std::byte*, Extent) override { Raise(step, to); }

  const std::byte* Arrived(int from, uint32_t their_step, Extent where) override {
    if (!Raised(from, their_step)) return nullptr;
    return Memory(from, where.space) + where.offset;
  }

  void Consume(uint32_t step, int from, uint32_t) override { Raise(step, from); }

  bool Consumed(int to, uint32_t, uint32_t their_step) override { return Raised(to, their_step); }

  std::byte* Memory(int member, Space space) override {
    const Slot& slot = SlotOf(member);
    const uint64_t offset = space == Space::kData ? slot.data_offset : slot.scratch_offset;
    const uint64_t bytes = space == Space::kData ? data_bytes_ : scratch_bytes_;
    const int rank = port_.members_[static_cast<size_t>(member)];
    // The offset comes from a peer: it must lie in that peer's arena.
    if (offset > peers_.arena_bytes(rank) || bytes > peers_.arena_bytes(rank) - offset)
      return nullptr;
    return peers_.arena_base(rank) + offset;
  }

  std::byte* Notes(int member) override { return EntryOf(member).memory[slot_index_].notes; }

  void Nudge() override { port_.RingOthers(); }

 private:
  // Valid for this worker, and for the others once the start gate has passed.
  GroupEntry& EntryOf(int member) {
    GroupEntry*& entry = entries_[static_cast<size_t>(member)];
    if (entry == nullptr) entry = port_.EntryOf(member);
    return *entry;
  }
  Slot& SlotOf(int member) { return EntryOf(member).slots[slot_index_]; }

  // The group's first member has let go of it without this session. It lets go only when all sessions
  // that it has opened have passed, so where this member has not entered the finish gate, the first
  // member never opened this one. Its entry may be another group's by now, and is not written to any
  // more: a word that was read before this was asked is replaced only if it is still the same.
  bool FirstMemberIsGone() const { return !finishing_ && port_.LeaderLeft(); }

  // Without the first member nobody passes, and we have not entered: the gate stays shut for good.
  GateState Shut(BreakReason why) {
    shut_ = true;
    shut_for_loss_ = why == BreakReason::kLoss;
    return GateState::kBroken;
  }

  // Null: the group's first member has not made it, or is gone.
  std::atomic<uint64_t>* GateWordOf(Gate gate) {
    GroupEntry* entry = port_.EntryOf(0);
    if (entry == nullptr || FirstMemberIsGone()) return nullptr;
    return &WordIn(*entry, gate);
  }

  std::atomic<uint64_t>& WordIn(GroupEntry& entry, Gate gate) const {
    return entry.gates[slot_index_][static_cast<int>(gate)].word;
  }

  // Writes down why the group is at its end, unless it stands there already, and returns what stands
  // there. Who breaks a gate and who sees one broken both do so, so that all read the same.
  uint64_t NoteFailure(Gate gate, uint64_t word) {
    const uint64_t mine =
        (word & (kMembers | kBroken | kForLoss)) | (gate == Gate::kFinish ? kFinishGate : 0);
    uint64_t there = 0;
    return port_.EntryOf(0)->failure.compare_exchange_strong(there, mine) ? mine : there;
  }

  // The members that a gate word of the first member shows for this session.
  uint64_t MembersIn(uint64_t word) const {
    return word >> kGenerationShift == gate_generation_ ? word & kMembers : 0;
  }

  // What a gate word of the first member, just read, means for this session.
  GateState Judge(uint64_t word) const {
    const uint64_t generation = word >> kGenerationShift;
    if (generation == gate_generation_ && (word & kMembers) == port_.everybody_) {
      return GateState::kPassed;
    }
    // The first member has let go of the group, with this session if this member has come so far.
    if (port_.LeaderLeft()) return finishing_ ? GateState::kPassed : GateState::kOpen;
    // The slot has gone on to its next session. It does so only after both gates of this one passed.
    const bool before = generation == ((gate_generation_ - 1) & (kGenerations - 1));
    if (generation != gate_generation_ && !before) return GateState::kPassed;
    return !before && (word & kBroken) != 0 ? GateState::kBroken : GateState::kOpen;
  }

  std::atomic<uint64_t>& FlagOf(int member, uint32_t step) {
    const Slot& slot = SlotOf(member);
    if (slot.steps <= kInlineFlags) return EntryOf(member).memory[slot_index_].flags[step];
    Control& control = peers_.control(port_.members_[static_cast<size_t>(member)]);
    return control.heap_flags[(slot.heap_flag + step) % kHeapFlags];
  }

  void Raise(uint32_t step, int for_whom) {
    FlagOf(port_.self_, step).store(SlotOf(port_.self_).generation, std::memory_order_release);
    peers_.Ring(port_.members_[static_cast<size_t>(for_whom)]);
  }

  bool Raised(int member, uint32_t step) {
    const Slot& slot = SlotOf(member);
    // The slot's next session starts only when this one is over for its owner: then every flag had
    // been up.
    if (slot.sequence.load(std::memory_order_acquire) != sequence_ + 1) return true;
    return FlagOf(member, step).load(std::memory_order_acquire) == slot.generation;
  }

  ShmGroupPort& port_;
  Peers& peers_;
  const uint64_t sequence_;
  const int slot_index_;
  const uint64_t gate_generation_;
  const uint64_t data_bytes_;
  const uint64_t scratch_bytes_;
  absl::InlinedVector<GroupEntry*, 8> entries_;
  bool finishing_ = false;  // this member has entered the finish gate
  bool shut_ = false;       // broken without the group's first member, which has no such session
  bool shut_for_loss_ = false;  // and this was for a loss
};

ShmGroupPort::ShmGroupPort(SessionContext& context, uint64_t key, std::vector<int> members,
                           int self, const FoundEntry& own)
    : context_(context),
      key_(key),
      members_(std::move(members)),
      self_(self),
      first_generation_(FirstGeneration(key)),
      everybody_((uint64_t{1} << members_.size()) - 1),
      own_(own),
      entries_(members_.size(), nullptr) {
  entries_[static_cast<size_t>(self)] = own.entry;
  if (self == 0) leader_key_ = own.key;
  std::iota(std::begin(free_for_), std::end(free_for_), uint64_t{0});
}

absl::StatusOr<std::unique_ptr<ShmGroupPort>> ShmGroupPort::Make(SessionContext& context,
                                                                 uint64_t key,
                                                                 const std::vector<int>& members) {
  const auto self = std::find(members.begin(), members.end(), context.peers.rank());
  if (self == members.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", context.peers.rank(), " is not a member of the group it makes"));
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const FoundEntry own, context.entries.Take(key));
  std::unique_ptr<ShmGroupPort> port(
      new ShmGroupPort(context, key, members, static_cast<int>(self - members.begin()), own));
  port->RingOthers();  // the first member's entry is what the others may be waiting for
  return port;
}

ShmGroupPort::~ShmGroupPort() {
  // First: a member that makes the group after we have looked for its entry finds us gone.
  context_.entries.Give(own_, members_, self_, keep_entry_);
  for (int member = 0; member < static_cast<int>(members_.size()); ++member) {
    if (member == self_) continue;
    if (GroupEntry* entry = EntryOf(member); entry != nullptr) TellLetGo(*entry, key_, self_);
  }
}

GroupEntry* ShmGroupPort::EntryOf(int member) {
  GroupEntry*& known = entries_[static_cast<size_t>(member)];
  if (known != nullptr) return known;
  const FoundEntry found =
      FindEntry(context_.peers.control(members_[static_cast<size_t>(member)]), key_);
  known = found.entry;
  if (member == 0) leader_key_ = found.key;
  return known;
}

bool ShmGroupPort::Failed() {
  GroupEntry* entry = EntryOf(0);
  // What stands in an entry that was let go may be of another group.
  return entry != nullptr && entry->failure.load(std::memory_order_acquire) != 0 && !LeaderLeft();
}

bool ShmGroupPort::Renounced() {
  for (int member = 0; member < static_cast<int>(members_.size()); ++member) {
    const Control& control = context_.peers.control(members_[static_cast<size_t>(member)]);
    if (EntryOf(member) == nullptr && HasRenounced(control, key_)) return true;
  }
  return false;
}

void ShmGroupPort::RingOthers() {
  for (size_t member = 0; member < members_.size(); ++member) {
    if (static_cast<int>(member) != self_) context_.peers.Ring(members_[member]);
  }
}

absl::StatusOr<std::unique_ptr<Session>> ShmGroupPort::Open(const SessionSpec& spec) {
  if (free_for_[spec.sequence % kSlots] != spec.sequence) {
    return absl::UnavailableError(
        absl::StrCat("operation ", spec.sequence - kSlots, " of the group is still open"));
  }
  uint32_t heap_flag = 0;
  if (spec.steps > kInlineFlags) {
    const std::optional<uint32_t> first = context_.heap.Take(spec.steps);
    if (!first) return absl::UnavailableError("too many large operations at once");
    heap_flag = *first;
  }
  return std::make_unique<ShmSession>(*this, spec, heap_flag);
}

}  // namespace syncopate::transport::shm
