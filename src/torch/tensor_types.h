// Maps LibTorch's element types to ours.
#ifndef SYNCOPATE_TORCH_TENSOR_TYPES_H_
#define SYNCOPATE_TORCH_TENSOR_TYPES_H_

#include <c10/core/ScalarType.h>

#include <optional>

#include "syncopate/data_type.h"

namespace syncopate::torch {

// Returns nothing for a type that cannot be added up.
inline std::optional<DataType> TypeOf(c10::ScalarType type) {
  switch (type) {
    case c10::ScalarType::Float:
      return DataType::kFloat32;
    case c10::ScalarType::Double:
      return DataType::kFloat64;
    case c10::ScalarType::Half:
      return DataType::kFloat16;
    case c10::ScalarType::BFloat16:
      return DataType::kBFloat16;
    case c10::ScalarType::Int:
      return DataType::kInt32;
    case c10::ScalarType::Long:
      return DataType::kInt64;
    default:
      return std::nullopt;
  }
}

}  // namespace syncopate::torch

#endif  // SYNCOPATE_TORCH_TENSOR_TYPES_H_
