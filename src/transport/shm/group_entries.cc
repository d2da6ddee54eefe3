#include "transport/shm/group_entries.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "transport/shm/board.h"

namespace syncopate::transport::shm {
namespace {

constexpr int kLetGoTagShift = 48;
// Entries whose first page is taken from the system at the start.
constexpr int kReadyEntries = 32;
// Kept entries that are looked at when a group is made, while there are free ones.
constexpr size_t kKeptLookedAt = 4;

uint64_t Mixed(uint64_t key) { return key * 0x9e3779b97f4a7c15u; }

// What GroupEntry::let_go of a group begins with, less its shift.
uint64_t LetGoTag(uint64_t key) { return Mixed(key) >> kLetGoTagShift; }

// The places of a level of the index in which the key can be.
class Window {
 public:
  Window(Control& control, uint64_t key, uint32_t level)
      : level_(control.index + kIndexFirstLevel * ((size_t{1} << level) - 1)),
        places_(size_t{kIndexFirstLevel} << level),
        first_(static_cast<size_t>(Mixed(key) >> 20) % places_) {}

  IndexPlace& operator[](size_t i) const { return level_[(first_ + i) % places_]; }
  static constexpr size_t size() { return kIndexWindow; }

 private:
  IndexPlace* const level_;
  const size_t places_;
  const size_t first_;
};

// What the word says may be another worker's.
uint32_t LevelsOf(const Control& control) {
  return std::min<uint32_t>(control.index_levels.load(std::memory_order_acquire), kIndexLevels);
}

std::atomic<uint64_t>& GonePlace(Control& control, uint64_t key) {
  return control.gone[static_cast<size_t>(Mixed(key) >> 24) % kGonePlaces];
}

// Makes an entry that may have been another group's ready for this one.
void Prepare(GroupEntry& entry, uint64_t key) {
  entry.failure.store(0, std::memory_order_relaxed);
  entry.let_go.store(LetGoTag(key) << kLetGoTagShift, std::memory_order_relaxed);
  for (int slot = 0; slot < kSlots; ++slot) {
    entry.slots[slot].sequence.store(0, std::memory_order_relaxed);
    for (GateWord& gate : entry.gates[slot]) {
      // Release: a reader that still looks here for the previous group sees with this that its key
      // is gone.
      gate.word.store(FirstGeneration(key) << kGenerationShift, std::memory_order_release);
    }
  }
}

}  // namespace

uint64_t FirstGeneration(uint64_t key) { return (key >> 20) & (kGenerations - 1); }

// A key is used once, so a place that holds it before and after the entry was read held it meanwhile.
FoundEntry FindEntry(Control& control, uint64_t key) {
  for (uint32_t level = 0; level < LevelsOf(control); ++level) {
    const Window window(control, key, level);
    for (size_t i = 0; i < window.size(); ++i) {
      IndexPlace& place = window[i];
      if (place.key.load(std::memory_order_acquire) != key) continue;
      const uint32_t entry = place.entry.load(std::memory_order_acquire);
      if (place.key.load(std::memory_order_acquire) != key) return {};
      return {.entry = &control.groups[entry % kGroupsMax], .key = &place.key};
    }
  }
  return {};
}

bool HasRenounced(const Control& control, uint64_t key) {
  const std::atomic<uint64_t>& place = GonePlace(const_cast<Control&>(control), key);
  return place.load(std::memory_order_acquire) == key;
}

void TellLetGo(GroupEntry& entry, uint64_t key, int member) {
  uint64_t seen = entry.let_go.load(std::memory_order_relaxed);
  while (seen >> kLetGoTagShift == LetGoTag(key) &&
         !entry.let_go.compare_exchange_weak(seen, seen | uint64_t{1} << member,
                                             std::memory_order_release)) {
  }
}

// Writing takes the pages from the system now, and not in the first calls of the first groups.
GroupEntries::GroupEntries(Peers& peers) : peers_(peers) {
  for (int entry = 0; entry < kReadyEntries; ++entry) {
    peers.own().groups[entry].failure.store(0, std::memory_order_relaxed);
  }
}

absl::StatusOr<FoundEntry> GroupEntries::Take(uint64_t key) {
  MutexLock lock(&mutex_);
  FreeKept();
  Control& own = peers_.own();
  if (FindEntry(own, key).entry != nullptr) {
    return absl::AlreadyExistsError("a group with this key was made already");
  }
  IndexPlace* const place = FindPlace(key);
  const bool full = free_.empty() && untouched_ == kGroupsMax;
  if (full || place == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("this worker has ", kGroupsMax,
                     " groups on this host already; let go of groups that are no longer used"));
  }
  uint32_t entry = 0;
  if (free_.empty()) {
    entry = untouched_++;
  } else {
    entry = free_.top();
    free_.pop();
  }
  Prepare(own.groups[entry], key);
  place->entry.store(entry, std::memory_order_release);
  place->key.store(key, std::memory_order_release);
  return FoundEntry{.entry = &own.groups[entry], .key = &place->key};
}

IndexPlace* GroupEntries::FindPlace(uint64_t key) {
  Control& own = peers_.own();
  for (uint32_t level = 0; level < kIndexLevels; ++level) {
    const Window window(own, key, level);
    for (size_t i = 0; i < window.size(); ++i) {
      if (window[i].key.load(std::memory_order_relaxed) != 0) continue;
      // Before the key is there: whoever knows of the key must look so far.
      if (level >= LevelsOf(own)) own.index_levels.store(level + 1, std::memory_order_release);
      return &window[i];
    }
  }
  return nullptr;
}

void GroupEntries::Give(const FoundEntry& given, const std::vector<int>& members, int self,
                        bool kept) {
  const uint64_t key = given.key->load(std::memory_order_relaxed);
  MutexLock lock(&mutex_);
  GonePlace(peers_.own(), key).store(key, std::memory_order_release);
  if (kept) {
    kept_.push_back({.found = given, .key = key, .self = self, .members = members});
  } else {
    Free(given);
  }
}

void GroupEntries::Renounce(uint64_t key) {
  GonePlace(peers_.own(), key).store(key, std::memory_order_release);
}

void GroupEntries::Free(const FoundEntry& found) {
  found.key->store(0, std::memory_order_release);
  free_.push(static_cast<uint32_t>(found.entry - peers_.own().groups));
}

bool GroupEntries::IsNeeded(const Kept& kept) {
  const uint64_t let_go = kept.found.entry->let_go.load(std::memory_order_acquire);
  for (int member = 0; member < static_cast<int>(kept.members.size()); ++member) {
    if (member == kept.self || (let_go >> member & 1) != 0) continue;
    const int rank = kept.members[static_cast<size_t>(member)];
    if (!HasRenounced(peers_.control(rank), kept.key) && !IsLost(peers_.board(), rank)) return true;
  }
  return false;
}

void GroupEntries::FreeKept() {
  const bool short_of_entries = free_.empty() && untouched_ == kGroupsMax;
  const size_t looks = short_of_entries ? kept_.size() : std::min(kept_.size(), kKeptLookedAt);
  for (size_t i = 0; i < looks; ++i) {
    Kept kept = std::move(kept_.front());
    kept_.pop_front();
    if (IsNeeded(kept)) {
      kept_.push_back(std::move(kept));
    } else {
      Free(kept.found);
    }
  }
}

}  // namespace syncopate::transport::shm
