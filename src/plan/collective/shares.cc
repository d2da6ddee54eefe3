// The arithmetic that planners share.
#include "plan/collective/shares.h"

#include <algorithm>
#include <bit>

#include "absl/strings/str_cat.h"
#include "base/limits.h"
#include "base/status.h"

namespace syncopate::plan {
namespace {

absl::Status CheckParts(uint64_t parts) {
  if (parts <= limits::kChunksMax) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the data would be cut into ", parts,
                                                 " chunks; at most ", limits::kChunksMax,
                                                 " are allowed: use fewer pieces"));
}

// Appends the upper bounds of `parts` parts of [begin, begin + elements).
void AppendCut(uint64_t begin, uint64_t elements, uint64_t parts, std::vector<uint64_t>* bounds) {
  const uint64_t unit = elements >= kCutAlignment * parts ? kCutAlignment : 1;
  const uint64_t units = elements / unit;
  const uint64_t share = units / parts, rest = units % parts;
  for (uint64_t i = 1; i < parts; ++i) {
    bounds->push_back(begin + unit * (i * share + std::min(i, rest)));
  }
  bounds->push_back(begin + elements);
}

}  // namespace

absl::StatusOr<std::vector<uint64_t>> CutEvenly(uint64_t elements, uint64_t parts) {
  SYNCOPATE_RETURN_IF_ERROR(CheckParts(parts));
  std::vector<uint64_t> bounds = {0};
  bounds.reserve(parts + 1);
  AppendCut(0, elements, parts, &bounds);
  return bounds;
}

absl::StatusOr<std::vector<uint64_t>> CutBlocks(const CollectiveRequest& request, uint64_t pieces) {
  SYNCOPATE_RETURN_IF_ERROR(CheckParts(pieces * request.block_elements.size()));
  std::vector<uint64_t> bounds = {0};
  bounds.reserve(pieces * request.block_elements.size() + 1);
  for (uint64_t elements : request.block_elements) {
    AppendCut(bounds.back(), elements, pieces, &bounds);
  }
  return bounds;
}

int IndexOf(const CollectiveRequest& request, int rank) {
  return static_cast<int>(std::lower_bound(request.active.begin(), request.active.end(), rank) -
                          request.active.begin());
}

int FloorPowerOfTwo(int value) {
  return static_cast<int>(std::bit_floor(static_cast<unsigned>(value)));
}

int InOrderParent(int index, int size) {
  // Counted from 1, the height of a node is the number of zeros at the end of its number, and the
  // parent is the neighbouring number with one zero more. That holds in the unbounded tree;
  // ancestors beyond `size` are skipped.
  unsigned node = static_cast<unsigned>(index) + 1;
  if (node == std::bit_floor(static_cast<unsigned>(size))) return -1;
  do {
    const unsigned bit = node & (~node + 1);
    node = (node & ~bit) | (bit << 1);
  } while (node > static_cast<unsigned>(size));
  return static_cast<int>(node) - 1;
}

}  // namespace syncopate::plan
