// The sorted ranks of a group with their hash, so that a list of very many is compared and looked up
// without being read again.
#ifndef SYNCOPATE_SIM_MEMBER_LIST_H_
#define SYNCOPATE_SIM_MEMBER_LIST_H_

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "absl/hash/hash.h"

namespace syncopate::sim {

struct MemberList {
  explicit MemberList(std::vector<int> sorted)
      : ranks(std::move(sorted)), hash(absl::HashOf(ranks)) {}

  // Where the rank stands, or -1.
  int PositionOf(int rank) const {
    const auto found = std::lower_bound(ranks.begin(), ranks.end(), rank);
    return found != ranks.end() && *found == rank ? static_cast<int>(found - ranks.begin()) : -1;
  }

  const std::vector<int> ranks;
  const size_t hash;
};

using Members = std::shared_ptr<const MemberList>;

inline bool Same(const Members& one, const Members& two) {
  return one == two || (one->hash == two->hash && one->ranks == two->ranks);
}

}  // namespace syncopate::sim

#endif  // SYNCOPATE_SIM_MEMBER_LIST_H_
