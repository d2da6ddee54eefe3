#include "sync/pair_groups.h"

#include "absl/status/status.h"
#include "base/limits.h"
#include "base/status.h"
#include "syncopate/group_key.h"

namespace syncopate::sync {

namespace {

// Keys of the synchronizer's own begin here; services and patterns make smaller ones.
constexpr uint64_t kMakers = uint64_t{1} << 63;
constexpr int kRankBits = 12;
static_assert(limits::kWorkersMax <= 1 << kRankBits);
constexpr uint64_t kNumbersMax = uint64_t{1} << (64 - 2 * kRankBits);

GroupKey KeyOf(const Pair& pair, uint64_t number) {
  return {.maker = kMakers + static_cast<uint64_t>(pair.purpose),
          .number = (number << (2 * kRankBits)) | (static_cast<uint64_t>(pair.from) << kRankBits) |
                    static_cast<uint64_t>(pair.to)};
}

}  // namespace

// Synchronizers that this worker had before have used the first numbers; the other one has used the
// same.
absl::StatusOr<Group> PairGroups::Get(const Pair& pair, uint64_t version) {
  Entry& entry = groups_[pair];
  if (entry.group && entry.version == version) return *entry.group;
  // One that is broken has moved the number on already.
  if (entry.group) entry = {.number = entry.number + 1};
  for (; entry.number < kNumbersMax; ++entry.number) {
    absl::StatusOr<Group> group = Make(pair, version, entry.number);
    if (absl::IsAlreadyExists(group.status())) continue;
    if (group.ok()) entry = {.number = entry.number, .version = version, .group = *group};
    return group;
  }
  return absl::ResourceExhaustedError("two workers have no group left");
}

uint64_t PairGroups::NumberOf(const Pair& pair) const {
  const auto found = groups_.find(pair);
  return found == groups_.end() ? 0 : found->second.number;
}

absl::StatusOr<Group> PairGroups::Get(const Pair& pair, uint64_t version, uint64_t number) {
  Entry& entry = groups_[pair];
  if (entry.group && entry.number == number) return *entry.group;
  if (number >= kNumbersMax) return absl::InvalidArgumentError("a group of two has no such number");
  entry = {.number = number};
  SYNCOPATE_ASSIGN_OR_RETURN(Group group, Make(pair, version, number));
  entry = {.number = number, .version = version, .group = group};
  return group;
}

absl::StatusOr<Group> PairGroups::Make(const Pair& pair, uint64_t version, uint64_t number) {
  return worker_.NewGroup({pair.from, pair.to}, KeyOf(pair, number), version);
}

void PairGroups::Drop(const Pair& pair, uint64_t number) {
  Entry& entry = groups_[pair];
  if (entry.number == number) entry = {.number = number + 1};
}

}  // namespace syncopate::sync
