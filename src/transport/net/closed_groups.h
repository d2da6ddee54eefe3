// The groups that a worker has let go, by their keys: what still comes for one of them is dropped, and
// must not make the group again.
#ifndef SYNCOPATE_TRANSPORT_NET_CLOSED_GROUPS_H_
#define SYNCOPATE_TRANSPORT_NET_CLOSED_GROUPS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "absl/container/flat_hash_map.h"

namespace syncopate::transport::net {

// Not thread-safe.
class ClosedGroups {
 public:
  // Of more than this many, the one that was closed first is forgotten.
  explicit ClosedGroups(size_t keys_max) : keys_max_(keys_max) {}

  // All operations of the group below `settled_below` have passed, and there were no others.
  void Add(uint64_t key, uint64_t settled_below) {
    if (!settled_.try_emplace(key, settled_below).second) return;
    order_.push_back(key);
    if (order_.size() <= keys_max_) return;
    settled_.erase(order_.front());
    order_.pop_front();
  }
  // What Add() was told; nothing if the group is not known as closed.
  std::optional<uint64_t> Find(uint64_t key) const {
    const auto found = settled_.find(key);
    if (found == settled_.end()) return std::nullopt;
    return found->second;
  }
  size_t size() const { return settled_.size(); }

 private:
  const size_t keys_max_;
  absl::flat_hash_map<uint64_t, uint64_t> settled_;
  std::deque<uint64_t> order_;  // the first was closed first
};

}  // namespace syncopate::transport::net

#endif  // SYNCOPATE_TRANSPORT_NET_CLOSED_GROUPS_H_
