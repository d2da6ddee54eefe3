// The layout of a worker's control memory, which all workers of the job on this host map.
// docs/shm.md explains it.
//
// Every field is an atomic or written only before a gate that its readers pass later. The comment
// beside a field names its writer.
#ifndef SYNCOPATE_TRANSPORT_SHM_CONTROL_H_
#define SYNCOPATE_TRANSPORT_SHM_CONTROL_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/limits.h"
#include "transport/shm/mail_ring.h"
#include "transport/transport.h"

namespace syncopate::transport::shm {

inline constexpr uint64_t kMagic = 0x53594e434f504131;  // "SYNCOPA1"
inline constexpr int kGroupsMax = 2048;                 // live groups of one worker
// The index has levels, each twice as large as the one before, of which as few are used as there is room in: a
// job of few live groups touches the first page of it only.
inline constexpr int kIndexLevels = 5;
inline constexpr int kIndexFirstLevel = 256;  // places
inline constexpr int kIndexPlaces = kIndexFirstLevel * ((1 << kIndexLevels) - 1);
inline constexpr int kIndexWindow = 16;        // places of a level in which a key can be
inline constexpr int kGonePlaces = 4096;       // keys that are remembered as gone
inline constexpr int kSlots = 16;              // open sessions of one group
inline constexpr uint32_t kInlineFlags = 240;  // more steps take flags from the heap
inline constexpr uint32_t kHeapFlags = 1u << 19;

// A gate of one session, in the slot of the group's first member. One word, so that passing and
// breaking exclude each other: bits 0-47 the members that have entered, bit 48 broken, bit 49 that it
// broke for a lost member, bits 50-63 the generation of the slot.
struct alignas(64) GateWord {
  std::atomic<uint64_t> word;
};
inline constexpr int kGenerationShift = 50;
inline constexpr uint64_t kGenerations = uint64_t{1} << 14;

// One session of the owner, who writes it before entering the start gate. In one line: the others read it at each
// session, from another core.
struct alignas(64) Slot {
  std::atomic<uint64_t> sequence;  // 1 + the session's; grows; written last
  uint64_t digest;
  double weight;
  uint64_t data_offset;     // in the owner's arena, or kNowhere
  uint64_t scratch_offset;  // in the owner's arena, or kNowhere
  // A flag that holds it is up. Its owner never used it before, and it is not 0, which flags hold
  // that nobody has touched.
  uint64_t generation;
  // The first flag in the heap if the session has more than kInlineFlags, else unused.
  uint32_t heap_flag;
  uint32_t steps;
  uint32_t staged;  // 1: the data is a copy that only the operation uses
};
static_assert(sizeof(Slot) == 64);

// What a slot has besides, for sessions by steps or with notes.
struct alignas(64) SlotMemory {
  std::byte notes[Session::kNotesBytes];
  alignas(64) std::atomic<uint64_t> flags[kInlineFlags];
};
inline constexpr uint64_t kNowhere = ~uint64_t{0};

// What every group needs comes first, in one page with what its first session needs unless it runs by steps.
struct alignas(4096) GroupEntry {
  // By slot: written by all members; used in the entry of the group's first member only.
  GateWord gates[kSlots][2];
  Slot slots[kSlots];
  // Of the group's first member, written by all: 0 while no gate of the group is broken; else the first
  // one that broke, bits 0-49 as in its word, bit 50 set if it is a finish gate.
  alignas(64) std::atomic<uint64_t> failure;
  // By the other members, once they have let go of the group: bits 0-47 the members, bits 48-63 a part of
  // the group's key, so that a late one does not speak of another group.
  std::atomic<uint64_t> let_go;
  SlotMemory memory[kSlots];
};

// Where a group's entry is.
struct IndexPlace {
  std::atomic<uint64_t> key;  // 0: none
  std::atomic<uint32_t> entry;
};

// The verdicts on lost workers, in the control memory of rank 0, written by every worker of the job.
// They stand in their order and without gaps: one that is there stays, and none comes before it later.
struct Board {
  // 0: none yet; else 1 + rank << 16 | cause << 8 | by whom.
  std::atomic<uint64_t> verdicts[limits::kLocalWorkersMax];
};

// Values of Control::fencing. A worker that cannot end another says why: kCannotFence with errno in
// the low bits.
inline constexpr uint32_t kFencesAll = 1;
inline constexpr uint32_t kCannotFence = 1u << 16;

struct Control {
  uint64_t magic;  // written before the memory is shared
  int32_t rank;
  int32_t pid;
  // By the owner, once it has met all others: kFencesAll, or what kept it from ending the process of
  // one of them. Futex.
  std::atomic<uint32_t> fencing;
  alignas(64) std::atomic<int64_t> beat_ns;     // by the owner's sentry
  alignas(64) std::atomic<uint32_t> doorbell;   // futex; by anyone
  std::atomic<uint32_t> sleepers;               // by the owner: threads that are in Park()
  std::atomic<uint32_t> bell;                   // by the owner: 1 if it waits for its bell too
  alignas(64) std::atomic<uint64_t> mail_from;  // by anyone: a bit for each rank with news of mail
  alignas(64) Board board;
  alignas(64) std::atomic<uint32_t> index_levels;  // by the owner: that have been used; grows
  // By the owner: which entries belong to which groups.
  alignas(4096) IndexPlace index[kIndexPlaces];
  // By the owner: keys of groups that it has let go, or will not make; of those that share a place, the
  // last.
  std::atomic<uint64_t> gone[kGonePlaces];
  GroupEntry groups[kGroupsMax];
  std::atomic<uint64_t> heap_flags[kHeapFlags];
  MailRing messages[limits::kLocalWorkersMax];  // by sender
  MailRing parcels[limits::kLocalWorkersMax];   // by sender
};

static_assert(kIndexPlaces >= 3 * kGroupsMax);
static_assert(offsetof(GroupEntry, memory) + offsetof(SlotMemory, flags) <= 4096);
static_assert(std::atomic<uint64_t>::is_always_lock_free);
static_assert(std::atomic<uint32_t>::is_always_lock_free);

}  // namespace syncopate::transport::shm

#endif  // SYNCOPATE_TRANSPORT_SHM_CONTROL_H_
