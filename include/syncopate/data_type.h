// The types of elements and the reductions that collectives know, and their names.
#ifndef SYNCOPATE_DATA_TYPE_H_
#define SYNCOPATE_DATA_TYPE_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace syncopate {
// The types of elements.
enum class DataType : uint8_t { kFloat32, kFloat64, kFloat16, kBFloat16, kInt32, kInt64 };
inline constexpr DataType kDataTypes[] = {DataType::kFloat32, DataType::kFloat64,
                                          DataType::kFloat16, DataType::kBFloat16,
                                          DataType::kInt32,   DataType::kInt64};
// How elements of several workers become one.
enum class ReduceOp : uint8_t {
  kSum,
  kAverage,  // the sum divided by the number of contributions (integers: truncated towards zero)
  kWeightedAverage,  // sum of weight * value over the sum of weights; floating types only
  kMin,
  kMax,
  kProduct,
};
inline constexpr ReduceOp kReduceOps[] = {
    ReduceOp::kSum, ReduceOp::kAverage, ReduceOp::kWeightedAverage,
    ReduceOp::kMin, ReduceOp::kMax,     ReduceOp::kProduct};

size_t SizeOf(DataType type);    // bytes of an element
bool IsFloating(DataType type);  // whether it is not an integer
// "float32", as nccl-tests spells it; "float" and "half" are read too.
absl::string_view Name(DataType type);
absl::string_view Name(ReduceOp op);  // "sum", "avg", "wavg", "min", "max", "prod"
absl::StatusOr<DataType> ParseDataType(absl::string_view name);  // what Name(DataType) gave
absl::StatusOr<ReduceOp> ParseReduceOp(absl::string_view name);  // what Name(ReduceOp) gave

}  // namespace syncopate

#endif  // SYNCOPATE_DATA_TYPE_H_
