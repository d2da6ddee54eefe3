#include "model/tensor_layout.h"

#include <algorithm>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

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

absl::StatusOr<std::vector<TensorLayout::Range>> TensorLayout::RangesOfBytes(uint64_t begin,
                                                                             uint64_t end) const {
  const auto refuse = [&](absl::string_view why) {
    return absl::InvalidArgumentError(
        absl::StrCat("bytes ", begin, " to ", end, " of a layout of ", bytes_, ": ", why));
  };
  if (begin >= end || end > bytes_) return refuse("there are no such bytes");
  std::vector<Range> ranges;
  for (size_t type = 0; type < kTypes; ++type) {
    const uint64_t size = SizeOf(static_cast<DataType>(type));
    const uint64_t from = std::max(begin, offsets_[type]);
    const uint64_t to = std::min(end, offsets_[type] + elements_[type] * size);
    if (from >= to) continue;
    if ((from - offsets_[type]) % size != 0 || (to - from) % size != 0) {
      return refuse("they cut an element in two");
    }
    ranges.push_back({static_cast<DataType>(type), from, (to - from) / size});
  }
  return ranges;
}

std::vector<int> TensorLayout::TensorsIn(uint64_t begin, uint64_t end) const {
  std::vector<int> tensors;
  for (int tensor = 0; tensor < static_cast<int>(types_.size()); ++tensor) {
    const uint64_t at = Offset(tensor);
    if (at < end && begin < at + BytesOf(tensor)) tensors.push_back(tensor);
  }
  return tensors;
}

uint64_t TensorLayout::BytesOf(int tensor) const {
  const size_t t = static_cast<size_t>(tensor);
  return sizes_[t] * SizeOf(types_[t]);
}

}  // namespace syncopate
