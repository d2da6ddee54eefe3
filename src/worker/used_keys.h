// Which keys of groups a worker has brought already.
#ifndef SYNCOPATE_WORKER_USED_KEYS_H_
#define SYNCOPATE_WORKER_USED_KEYS_H_

#include <cstddef>
#include <deque>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "syncopate/group_key.h"

namespace syncopate::worker {

// Not thread-safe.
class UsedKeys {
 public:
  // Of more than this many keys, the one that was used first is forgotten.
  explicit UsedKeys(size_t keys_max) : keys_max_(keys_max) {}

  bool Contains(const GroupKey& key) const { return keys_.contains({key.maker, key.number}); }
  void Add(const GroupKey& key) {
    if (!keys_.emplace(key.maker, key.number).second) return;
    order_.push_back(key);
    if (order_.size() <= keys_max_) return;
    keys_.erase({order_.front().maker, order_.front().number});
    order_.pop_front();
  }

 private:
  const size_t keys_max_;
  absl::flat_hash_set<std::pair<uint64_t, uint64_t>> keys_;
  std::deque<GroupKey> order_;  // the first was used first
};

}  // namespace syncopate::worker

#endif  // SYNCOPATE_WORKER_USED_KEYS_H_
