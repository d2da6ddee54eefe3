// Sums of packed values, each times a factor: what an exchange with neighbours leaves, and a plain
// step of gradient descent.
#ifndef SYNCOPATE_SYNC_WEIGHTED_SUM_H_
#define SYNCOPATE_SYNC_WEIGHTED_SUM_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "syncopate/data_type.h"

namespace syncopate::sync {

struct SumTerm {
  double factor = 1;
  const std::byte* values = nullptr;
};

// Writes the sum of the terms, in their order, to `to`, which may be the values of one of them. Float64
// is added up in float64, the other floating types in float32 with one rounding at the end. `type` is
// floating; the memory is aligned for it.
void WeightedSum(DataType type, uint64_t elements, absl::Span<const SumTerm> terms, std::byte* to);

}  // namespace syncopate::sync

#endif  // SYNCOPATE_SYNC_WEIGHTED_SUM_H_
