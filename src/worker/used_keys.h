// Which keys of groups a worker has brought already.
//
// A maker's numbers grow, so they are kept in blocks: a worker that is in some of ten thousand groups
// needs a few kilobytes for them.
#ifndef SYNCOPATE_WORKER_USED_KEYS_H_
#define SYNCOPATE_WORKER_USED_KEYS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "syncopate/group_key.h"

namespace syncopate::worker {

// Not thread-safe.
class UsedKeys {
 public:
  // Of more than this many blocks of 64 numbers of a maker, the one that was begun first is forgotten.
  explicit UsedKeys(size_t blocks_max) : blocks_max_(blocks_max) {}

  bool Contains(const GroupKey& key) const {
    const auto found = blocks_.find(BlockOf(key));
    return found != blocks_.end() && (found->second & BitOf(key)) != 0;
  }
  void Add(const GroupKey& key) {
    const auto [found, fresh] = blocks_.try_emplace(BlockOf(key), 0);
    found->second |= BitOf(key);
    if (!fresh) return;
    order_.push_back(found->first);
    if (order_.size() <= blocks_max_) return;
    blocks_.erase(order_.front());
    order_.pop_front();
  }

 private:
  using Block = std::pair<uint64_t, uint64_t>;  // maker, number / 64
  static Block BlockOf(const GroupKey& key) { return {key.maker, key.number / 64}; }
  static uint64_t BitOf(const GroupKey& key) { return uint64_t{1} << key.number % 64; }

  const size_t blocks_max_;
  absl::flat_hash_map<Block, uint64_t> blocks_;
  std::deque<Block> order_;  // the first was begun first
};

}  // namespace syncopate::worker

#endif  // SYNCOPATE_WORKER_USED_KEYS_H_
