// What a worker asks another one that it pushes to or pulls from: what is read is written as it was read,
// and moves nothing outside of the layout.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "model/tensor_layout.h"
#include "sync/serve_request.h"

namespace {

using namespace syncopate;

// Tensors of two types, of which one is empty.
TensorTable Table() {
  return {.model = "fuzz",
          .tensors = {{.name = "a", .elements = 17, .type = DataType::kFloat32},
                      {.name = "b", .elements = 5, .type = DataType::kFloat16},
                      {.name = "c", .elements = 0, .type = DataType::kFloat16},
                      {.name = "d", .elements = 64, .type = DataType::kFloat32}}};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const TensorTable table = Table();
  static const TensorLayout layout(table);
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<sync::ServeRequest> request = sync::DecodeServeRequest(bytes);
  if (!request.ok()) return 0;
  if (Encode(*request) != bytes || !std::isfinite(request->weight)) abort();
  const absl::StatusOr<std::vector<TensorLayout::Range>> ranges =
      sync::RangesOf(*request, layout, static_cast<int>(table.tensors.size()));
  if (!ranges.ok()) return 0;
  for (const TensorLayout::Range& range : *ranges) {
    const uint64_t range_bytes = range.elements * SizeOf(range.type);
    if (range.offset > layout.bytes() || range_bytes > layout.bytes() - range.offset) abort();
  }
  return 0;
}
