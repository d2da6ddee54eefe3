// The write-ahead record of a Fold that overwrites its own sources. It lives in shared memory, so
// that after the death of the folding process another one can finish its work.
//
// The folding process works block by block. It computes a block's results, writes them into the
// half of `block` that `state` does not name, publishes them with one store of `state`, and only
// then writes them to the destinations. So at any moment at which it may have died:
//   - elements below Position() are in all destinations;
//   - the next Pending() elements may be in some of them, wholly or in part, and the half that
//     `state` names holds their results; if Pending() is 0, no destination has been touched from
//     Position() on;
//   - all sources from Position() + Pending() on are untouched.
// Two halves, because the results of one block are written while those of the block before may
// still be needed.
#ifndef SYNCOPATE_ENGINE_FOLD_JOURNAL_H_
#define SYNCOPATE_ENGINE_FOLD_JOURNAL_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "syncopate/data_type.h"

namespace syncopate::engine {

// All zero is a valid journal: nothing pending at position 0.
struct alignas(64) FoldJournal {
  static constexpr size_t kBytes = 512;
  static constexpr size_t kHalfBytes = kBytes / 2;  // the largest block

  // Bits 0-14: pending elements. Bit 15: the half that holds their results, 0 if there are none.
  // The rest: position, in elements from the start of the *operation's* buffer range (the caller's
  // `journal_origin` + index). One word, so that it changes at once.
  std::atomic<uint64_t> state;
  alignas(64) std::byte block[kBytes];

  static constexpr uint64_t Pack(uint64_t position, uint64_t pending, uint64_t half) {
    return position << 16 | half << 15 | pending;
  }
  static constexpr uint64_t Position(uint64_t state) { return state >> 16; }
  static constexpr uint64_t Pending(uint64_t state) { return state & 0x7fff; }
  static constexpr uint64_t Half(uint64_t state) { return state >> 15 & 1; }

  std::byte* half(uint64_t which) { return block + which * kHalfBytes; }
};
static_assert(std::atomic<uint64_t>::is_always_lock_free, "the journal is shared by processes");

// Completes the block that was pending when a Fold's process died: writes it to all destinations
// and moves the position past it. Returns the number of elements of that Fold that are now done;
// what is left is a Fold of the sources, destinations, and origin that many elements further on.
// `destinations`, `elements` and `journal_origin` as that Fold had them. May itself be interrupted
// at any moment and done again, by anyone. An error (DataLoss) if the journal holds what no Fold of
// this range writes; then nothing was changed.
//
// The caller must know that the process is dead or will never run again, by means that order
// memory (the kernel said so): then every store that it executed is visible.
absl::StatusOr<uint64_t> ReplayJournal(FoldJournal* journal, DataType type,
                                       absl::Span<void* const> destinations, uint64_t elements,
                                       uint64_t journal_origin = 0);

}  // namespace syncopate::engine

#endif  // SYNCOPATE_ENGINE_FOLD_JOURNAL_H_
