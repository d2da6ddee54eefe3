// The groups that a synchronizer's transfers run in, made when they are first needed.
//
// Not thread-safe.
#ifndef SYNCOPATE_SYNC_GROUP_CACHE_H_
#define SYNCOPATE_SYNC_GROUP_CACHE_H_

#include <deque>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "strategy/command.h"
#include "syncopate/syncopate.h"

namespace syncopate::sync {

class GroupCache {
 public:
  // `worker` must outlive it.
  explicit GroupCache(Worker& worker) : worker_(worker) {}

  // The group that a transfer runs in. With a key: the one of that key, of which the newest are kept.
  // Else the one of its members (empty: all that live), kept until Drop(); gradients and parameters
  // then have groups of their own where `both` move, because each starts in an order of its own.
  absl::StatusOr<Group> Get(const strategy::StartTransfer& start, bool both);
  // A group that Get() returned is broken. Without a key the next Get() makes a new one, unless that has
  // happened since.
  void Drop(const Group& group);

  // From now on it is none of those that live.
  void Lose(int rank) { gone_.insert(rank); }
  bool IsGone(int rank) const { return gone_.contains(rank); }

 private:
  using Key =
      std::pair<bool, std::vector<int>>;  // whether it is one for parameters beside gradients
  Key KeyOf(const strategy::StartTransfer& start, bool both) const;
  absl::StatusOr<Group> GetByKey(const strategy::StartTransfer& start);

  Worker& worker_;
  std::set<int> gone_;
  bool world_is_broken_ = false;
  std::map<Key, Group> groups_;
  std::deque<std::pair<GroupKey, Group>> keyed_;  // the newest last
};

}  // namespace syncopate::sync

#endif  // SYNCOPATE_SYNC_GROUP_CACHE_H_
