// The arithmetic of collectives: folds of several sources into several destinations, vectorised
// with runtime dispatch.
//
// Thread-safe: pure functions on the memory they are given.
#ifndef SYNCOPATE_ENGINE_KERNELS_H_
#define SYNCOPATE_ENGINE_KERNELS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "syncopate/data_type.h"

namespace syncopate {

// How two values become one. An average is a sum with factors or a division (see Fold and Divide).
enum class FoldOp : uint8_t { kSum, kMin, kMax, kProduct };

struct FoldSource {
  const void* data = nullptr;
  double factor = 1;  // floating types with kSum only: each value is multiplied by it as it is read
};

// The write-ahead record of a Fold that overwrites its own sources. It lives in shared memory, so
// that after the death of the folding process another one can finish its work. At any moment before
// which the process may have died:
//   - elements below `position` are in all destinations;
//   - the block of up to kBytes that starts at `position` may be in some of them; if `pending` is
//   not 0, `block` holds its
//     first `pending` elements' results, else no destination has been touched from `position` on;
//   - all sources from `position` + `pending` on are untouched.
struct alignas(64) FoldJournal {
  static constexpr size_t kBytes = 512;
  // Low 16 bits: pending elements; the rest: position, in elements from the start of the
  // *operation's* buffer range (the caller's `journal_origin` + index). One word, so that it
  // changes at once.
  std::atomic<uint64_t> state;
  alignas(64) std::byte block[kBytes];
};

// destinations[d][i] = sources[0][i]*f0 (op) sources[1][i]*f1 (op) ... for i < elements and all d,
// left to right. 16-bit types accumulate in float32 and are rounded once, at the end. Each
// destination is either disjoint from every source or exactly one of them. With one source and
// factor 1 it copies (destinations equal to the source are skipped). The result's bits do not
// depend on the instruction set, the alignment, or on how a caller cuts the range.
//
// With a journal, keeps its promise above, with positions counted from `journal_origin`; at the end
// state = (journal_origin + elements, 0 pending).
void Fold(DataType type, FoldOp op, absl::Span<const FoldSource> sources,
          absl::Span<void* const> destinations, uint64_t elements, FoldJournal* journal = nullptr,
          uint64_t journal_origin = 0);

// data[i] = data[i] * factor, floating types.
void Scale(DataType type, void* data, uint64_t elements, double factor);

// data[i] = data[i] / divisor, truncated towards zero, integer types.
void Divide(DataType type, void* data, uint64_t elements, int64_t divisor);

// memcpy that goes past the cache (non-temporal stores) where that is quicker: for copies that will
// not be read soon.
void StreamCopy(void* to, const void* from, size_t bytes);

}  // namespace syncopate

#endif  // SYNCOPATE_ENGINE_KERNELS_H_
