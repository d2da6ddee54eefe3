// The groups that a synchronizer's transfers run in, made when they are first needed.
//
// Not thread-safe.
#ifndef SYNCOPATE_SYNC_GROUP_CACHE_H_
#define SYNCOPATE_SYNC_GROUP_CACHE_H_

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

  // The group of these members (empty: all that live); kept until Drop(). Gradients and parameters
  // have groups of their own where `both` move, because each starts in an order of its own.
  absl::StatusOr<Group> Get(strategy::Content content, const std::vector<int>& members, bool both);
  // The group is broken. The next Get() makes a new one.
  void Drop(strategy::Content content, const std::vector<int>& members, bool both);

  // From now on it is none of those that live.
  void Lose(int rank) { gone_.insert(rank); }
  bool IsGone(int rank) const { return gone_.contains(rank); }

 private:
  using Key =
      std::pair<bool, std::vector<int>>;  // whether it is one for parameters beside gradients
  Key KeyOf(strategy::Content content, const std::vector<int>& members, bool both) const;

  Worker& worker_;
  std::set<int> gone_;
  bool world_is_broken_ = false;
  std::map<Key, Group> groups_;
};

}  // namespace syncopate::sync

#endif  // SYNCOPATE_SYNC_GROUP_CACHE_H_
