// The arithmetic of collectives: folds of several sources into several destinations, vectorised
// with runtime dispatch.
//
// Thread-safe: pure functions on the memory they are given.
#ifndef SYNCOPATE_ENGINE_KERNELS_H_
#define SYNCOPATE_ENGINE_KERNELS_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "engine/fold_journal.h"
#include "syncopate/data_type.h"

namespace syncopate::engine {

// How two values become one. An average is a sum with factors or a division (see Fold and Divide).
enum class FoldOp : uint8_t { kSum, kMin, kMax, kProduct };

struct FoldSource {
  const void* data = nullptr;
  double factor = 1;  // floating types with kSum only: each value is multiplied by it as it is read
};

// destinations[d][i] = sources[0][i]*f0 (op) sources[1][i]*f1 (op) ... for i < elements and all d,
// left to right; at least one source. 16-bit types accumulate in float32 and are rounded once, at
// the end, to nearest even. Factors are rounded to float32 (float64 for float64), and a product is
// rounded before it is added. Integers wrap. Each destination is either disjoint from every source
// or exactly one of them. With one source and factor 1 it copies (destinations equal to the source
// are skipped).
//
// The result's bits do not depend on the instruction set, the alignment, or on how a caller cuts
// the range, with one exception: where the result is NaN, its sign and payload are unspecified.
// kMin and kMax give NaN if any of the values is NaN; of zeros that differ in sign, the first.
//
// With a journal, keeps its promise (fold_journal.h), with positions counted from `journal_origin`;
// at the start state = (journal_origin, 0 pending), at the end (journal_origin + elements, 0
// pending). A mere copy changes no source and can be done again from its start, so it stays at
// journal_origin until it is complete.
void Fold(DataType type, FoldOp op, absl::Span<const FoldSource> sources,
          absl::Span<void* const> destinations, uint64_t elements, FoldJournal* journal = nullptr,
          uint64_t journal_origin = 0);

// data[i] = data[i] * factor, floating types. Rounds as Fold does.
void Scale(DataType type, void* data, uint64_t elements, double factor);

// data[i] = data[i] / divisor, truncated towards zero, integer types; the divisor is not 0.
void Divide(DataType type, void* data, uint64_t elements, int64_t divisor);

// memcpy that goes past the cache (non-temporal stores): for copies much larger than the cache, or
// that will not be read soon.
void StreamCopy(void* to, const void* from, size_t bytes);

}  // namespace syncopate::engine

#endif  // SYNCOPATE_ENGINE_KERNELS_H_
