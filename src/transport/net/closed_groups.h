// The groups that a worker has let go, by their keys: what still comes for one of them is dropped, and
// must not make the group again.
//
// A job may close very many groups, so a key takes as little as it can: trees of small nodes grow with
// what they hold, where a hash table would double and leave its old memory behind; and that a group ran one
// operation, as most do where there are very many, is not written down. Nothing is kept to forget keys one by
// one; the older half of them goes at once.
#ifndef SYNCOPATE_TRANSPORT_NET_CLOSED_GROUPS_H_
#define SYNCOPATE_TRANSPORT_NET_CLOSED_GROUPS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"

namespace syncopate::transport::net {

// Not thread-safe.
class ClosedGroups {
 public:
  // At most this many are known, and at least half of them once that many were closed: those that were
  // closed last.
  explicit ClosedGroups(size_t keys_max) : keys_max_(keys_max) {}

  // All operations of the group below `settled_below` have passed, and there were no others.
  void Add(uint64_t key, uint64_t settled_below) {
    if (Find(key)) return;
    if (young_.size() >= keys_max_ / 2) old_ = std::exchange(young_, {});
    if (settled_below == 1) {
      young_.once.insert(key);
    } else {
      young_.others.emplace(key, settled_below);
    }
  }
  // What Add() was told; nothing if the group is not known as closed.
  std::optional<uint64_t> Find(uint64_t key) const {
    for (const Keys* keys : {&young_, &old_}) {
      if (keys->once.contains(key)) return 1;
      const auto found = keys->others.find(key);
      if (found != keys->others.end()) return found->second;
    }
    return std::nullopt;
  }
  size_t size() const { return young_.size() + old_.size(); }

 private:
  struct Keys {
    absl::btree_set<uint64_t> once;              // whose settled_below is 1
    absl::btree_map<uint64_t, uint64_t> others;  // key -> settled_below
    size_t size() const { return once.size() + others.size(); }
  };

  const size_t keys_max_;
  Keys young_, old_;
};

}  // namespace syncopate::transport::net

#endif  // SYNCOPATE_TRANSPORT_NET_CLOSED_GROUPS_H_
