// Elements of every type as numbers, and reductions of them in plain arithmetic: what benchmarks and
// runs of programs compare results with. It shares no code with the engine's kernels.
#ifndef SYNCOPATE_MODEL_ELEMENT_VALUE_H_
#define SYNCOPATE_MODEL_ELEMENT_VALUE_H_

#include <cstddef>

#include "absl/types/span.h"
#include "syncopate/data_type.h"

namespace syncopate {

// Writes `value` as one element. 16-bit types are for small whole numbers and their averages: there
// is no overflow, infinity or denormal.
void StoreElement(DataType type, double value, std::byte* to);
double LoadElement(DataType type, const std::byte* from);

// One element of a reduction. `values` are the contributions, at least one; `weights`, as many, are
// read by a weighted average only.
double ReducePlainly(ReduceOp op, DataType type, absl::Span<const double> values,
                     absl::Span<const double> weights);

}  // namespace syncopate

#endif  // SYNCOPATE_MODEL_ELEMENT_VALUE_H_
