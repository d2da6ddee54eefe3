#include "sync/parameter_store.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "sync/weighted_sum.h"

namespace syncopate::sync {

SgdStore::SgdStore(std::vector<std::byte> parameters, double learning_rate)
    : parameters_(std::move(parameters)), learning_rate_(learning_rate) {}

absl::Status SgdStore::Check(const TensorLayout::Range& range) const {
  const uint64_t size = SizeOf(range.type);
  if (IsFloating(range.type) && range.offset <= parameters_.size() &&
      range.elements <= (parameters_.size() - range.offset) / size) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(range.elements, " elements of ", Name(range.type),
                                                 " at byte ", range.offset,
                                                 " are not among the parameters that are held"));
}

absl::Status SgdStore::Apply(const TensorLayout::Range& range, const std::byte* gradients,
                             double weight) {
  SYNCOPATE_RETURN_IF_ERROR(Check(range));
  std::byte* const held = parameters_.data() + range.offset;
  WeightedSum(range.type, range.elements, {{1, held}, {-learning_rate_ * weight, gradients}}, held);
  return absl::OkStatus();
}

absl::Status SgdStore::Read(const TensorLayout::Range& range, std::byte* to) {
  SYNCOPATE_RETURN_IF_ERROR(Check(range));
  std::memcpy(to, parameters_.data() + range.offset, range.elements * SizeOf(range.type));
  return absl::OkStatus();
}

}  // namespace syncopate::sync
