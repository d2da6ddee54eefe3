// The tensors of a model that is trained: how large their gradients are and how long each takes to
// compute. What schedules are planned for, and what a replay of a model plays.
//
// Tensors stand in FORWARD order: index 0 is the first one that the forward pass uses. The backward
// pass runs from the last to the first, so the gradient of the last tensor is ready first.
#ifndef SYNCOPATE_MODEL_TENSOR_TABLE_H_
#define SYNCOPATE_MODEL_TENSOR_TABLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/digest.h"
#include "syncopate/data_type.h"

namespace syncopate {

struct TensorInfo {
  std::string name;  // "layer1.0.conv1.weight"; unique in its table
  uint64_t elements = 0;
  DataType type = DataType::kFloat32;
  double forward_seconds = 0;   // of the forward pass that this tensor's layer takes
  double backward_seconds = 0;  // from the gradient before it in backward order to its own

  uint64_t bytes() const { return elements * SizeOf(type); }
  friend bool operator==(const TensorInfo&, const TensorInfo&) = default;
};

struct TensorTable {
  std::string model;
  std::vector<TensorInfo> tensors;

  int size() const { return static_cast<int>(tensors.size()); }
  uint64_t elements() const;
  uint64_t bytes() const;
  double forward_seconds() const;   // of all tensors
  double backward_seconds() const;  // of all tensors

  friend bool operator==(const TensorTable&, const TensorTable&) = default;
};

// The first fault, with its path as in JSON: "tensors[3].elements: ...". A valid table has at least
// one tensor, unique names, at least one element in each, and times that are finite and not
// negative.
absl::Status Validate(const TensorTable& table);

// The text form. ParseTensorTable(ToJson(t)) == t for every valid t. ParseTensorTable validates and
// refuses unknown and repeated keys. Times are seconds, or text as "1.5ms".
std::string ToJson(const TensorTable& table);
absl::StatusOr<TensorTable> ParseTensorTable(absl::string_view json);

// The digest of everything, times included.
Digest DigestOf(const TensorTable& table);

// The same model with `bytes` times the elements (rounded, at least one in each tensor) and `times`
// times the times, to study it on a slower network or machine. Both must be positive.
TensorTable Scaled(const TensorTable& table, double bytes, double times);

// When each gradient is ready, in seconds after the backward pass began.
std::vector<double> ReadyTimes(const TensorTable& table);

}  // namespace syncopate

#endif  // SYNCOPATE_MODEL_TENSOR_TABLE_H_
