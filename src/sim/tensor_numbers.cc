#include "sim/tensor_numbers.h"

#include <algorithm>
#include <numeric>

#include "syncopate/data_type.h"

namespace syncopate::sim {

std::vector<TensorCut> TensorNumbers::Cut(const TensorLayout& layout,
                                          const strategy::StartTransfer& start) const {
  const bool by_bytes = start.end > 0;
  std::vector<int> tensors;
  if (by_bytes) {
    tensors = layout.TensorsIn(start.begin, start.end);
  } else {
    tensors.resize(static_cast<size_t>(start.last - start.first + 1));
    std::iota(tensors.begin(), tensors.end(), start.first);
  }
  std::vector<TensorCut> cuts;
  cuts.reserve(tensors.size());
  size_t offset = 0;
  for (const int tensor : tensors) {
    TensorCut cut{.tensor = tensor,
                  .first = first(tensor),
                  .count = end(tensor) - first(tensor),
                  .offset = offset};
    if (by_bytes) {
      const uint64_t at = layout.Offset(tensor), bytes = layout.BytesOf(tensor);
      const uint64_t from = std::max(start.begin, at), to = std::min(start.end, at + bytes);
      const uint64_t element = SizeOf(layout.type(tensor));
      cut.fraction = static_cast<double>(to - from) / static_cast<double>(bytes);
      if (cut.count == bytes / element) {
        cut.first += (from - at) / element;
        cut.count = (to - from) / element;
      } else {
        cut.share = cut.fraction;
      }
    }
    offset += cut.count;
    cuts.push_back(cut);
  }
  return cuts;
}

}  // namespace syncopate::sim
