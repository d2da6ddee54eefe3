// The arithmetic that planners share: how data is cut, where a worker stands among the active ones,
// and the shapes of trees. Everything here speaks of indices 0 .. size-1, not of ranks.
#ifndef SYNCOPATE_PLAN_COLLECTIVE_SHARES_H_
#define SYNCOPATE_PLAN_COLLECTIVE_SHARES_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "plan/collective/request.h"

namespace syncopate::plan {

// Inner bounds of a cut fall on multiples of this many elements, where there are that many for each
// part: a cache line for every type, so that two workers never write to the same line.
inline constexpr uint64_t kCutAlignment = 64;

// The parts + 1 bounds of `elements` cut into `parts` >= 1 nearly equal parts. Fails if a program
// cannot have that many chunks.
absl::StatusOr<std::vector<uint64_t>> CutEvenly(uint64_t elements, uint64_t parts);

// The bounds of the request's blocks, each cut into `pieces` parts: block i is the chunks
// [i * pieces, (i + 1) * pieces).
absl::StatusOr<std::vector<uint64_t>> CutBlocks(const CollectiveRequest& request, uint64_t pieces);

// Where the active rank `rank` stands in request.active.
int IndexOf(const CollectiveRequest& request, int rank);

// The largest power of two that is at most `value` >= 1.
int FloorPowerOfTwo(int value);

// The parent of `index` in a binary tree of logarithmic depth whose in-order walk is 0, 1, 2, ...;
// -1 for its root. Even indices are leaves.
int InOrderParent(int index, int size);

}  // namespace syncopate::plan

#endif  // SYNCOPATE_PLAN_COLLECTIVE_SHARES_H_
