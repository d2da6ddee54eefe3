#include "model/tensor_layout.h"

#include <optional>

namespace syncopate {
namespace {

constexpr uint64_t kCacheLineBytes = 64;

}  // namespace

TensorLayout::TensorLayout(const TensorTable& table) {
  for (const TensorInfo& tensor : table.tensors) {
    uint64_t& used = elements_[static_cast<size_t>(tensor.type)];
    begins_.push_back(used);
    types_.push_back(tensor.type);
    sizes_.push_back(tensor.elements);
    used += tensor.elements;
  }
  for (size_t type = 0; type < kTypes; ++type) {
    offsets_[type] = bytes_;
    const uint64_t section = elements_[type] * SizeOf(static_cast<DataType>(type));
    // Each section begins on a cache line, so no two collectives write to the same one.
    bytes_ += (section + kCacheLineBytes - 1) / kCacheLineBytes * kCacheLineBytes;
  }
}

uint64_t TensorLayout::Offset(int tensor) const {
  const size_t t = static_cast<size_t>(tensor);
  return offsets_[static_cast<size_t>(types_[t])] + begins_[t] * SizeOf(types_[t]);
}

std::vector<TensorLayout::Range> TensorLayout::Ranges(int first, int last) const {
  std::vector<Range> ranges;
  for (size_t type = 0; type < kTypes; ++type) {
    uint64_t elements = 0;
    std::optional<uint64_t> offset;
    for (int tensor = first; tensor <= last; ++tensor) {
      if (types_[static_cast<size_t>(tensor)] != static_cast<DataType>(type)) continue;
      if (!offset) offset = Offset(tensor);
      elements += sizes_[static_cast<size_t>(tensor)];
    }
    if (offset) ranges.push_back({static_cast<DataType>(type), *offset, elements});
  }
  return ranges;
}

}  // namespace syncopate
