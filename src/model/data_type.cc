#include "syncopate/data_type.h"

#include "absl/strings/str_cat.h"

namespace syncopate {

size_t SizeOf(DataType type) {
  switch (type) {
    case DataType::kFloat16:
    case DataType::kBFloat16:
      return 2;
    case DataType::kFloat32:
    case DataType::kInt32:
      return 4;
    case DataType::kFloat64:
    case DataType::kInt64:
      return 8;
  }
  return 0;
}

bool IsFloating(DataType type) { return type != DataType::kInt32 && type != DataType::kInt64; }

absl::string_view Name(DataType type) {
  switch (type) {
    case DataType::kFloat32:
      return "float32";
    case DataType::kFloat64:
      return "float64";
    case DataType::kFloat16:
      return "float16";
    case DataType::kBFloat16:
      return "bfloat16";
    case DataType::kInt32:
      return "int32";
    case DataType::kInt64:
      return "int64";
  }
  return "?";
}

absl::string_view Name(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return "sum";
    case ReduceOp::kAverage:
      return "avg";
    case ReduceOp::kWeightedAverage:
      return "wavg";
    case ReduceOp::kMin:
      return "min";
    case ReduceOp::kMax:
      return "max";
    case ReduceOp::kProduct:
      return "prod";
  }
  return "?";
}

absl::StatusOr<DataType> ParseDataType(absl::string_view name) {
  for (DataType type : kDataTypes) {
    if (name == Name(type)) return type;
  }
  if (name == "float") return DataType::kFloat32;
  if (name == "double") return DataType::kFloat64;
  if (name == "half") return DataType::kFloat16;
  return absl::InvalidArgumentError(absl::StrCat(
      "\"", name, "\" is not a type; choose float32, float64, float16, bfloat16, int32 or int64"));
}

absl::StatusOr<ReduceOp> ParseReduceOp(absl::string_view name) {
  for (ReduceOp op : kReduceOps) {
    if (name == Name(op)) return op;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("\"", name, "\" is not a reduction; choose sum, avg, wavg, min, max or prod"));
}

}  // namespace syncopate
