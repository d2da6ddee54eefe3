// The groups that a synchronizer's transfers run in, made when they are first needed.
//
// Groups without a key are kept, all but those of lost workers: they are not let go of to make room. A group that
// is made anew counts as the next one of its members (Worker::NewGroup), who meet only if all of them have made as
// many. But which of its groups a worker has not used for long depends on its other groups, in which other workers
// are, so one member would make the next group while the others still use the last one. What all members of a list
// know alike, the transfers of that list, does not tell how much room any of them has. So strategies whose
// groups change all the time name them by keys, which need no counting.
//
// Not thread-safe.
#ifndef SYNCOPATE_SYNC_GROUP_CACHE_H_
#define SYNCOPATE_SYNC_GROUP_CACHE_H_

#include <cstddef>
#include <cstdint>
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
  // `worker` must outlive it. `servers`: ranks that are no training ranks.
  explicit GroupCache(Worker& worker, const std::vector<int>& servers = {})
      : worker_(worker), servers_(servers.begin(), servers.end()) {}

  // The group that a transfer runs in, planned by the version of the network that it names. With a key: the
  // one of that key, of which the newest are kept. Else the one of its members (empty: all live training
  // ranks), kept until Drop() or until a transfer of them names another version, which comes at the same of their
  // transfers for all of them; gradients and parameters then have groups of their own where `both` move,
  // because each starts in an order of its own. The group of everybody is the world's, which follows the
  // network by itself.
  absl::StatusOr<Group> Get(const strategy::StartTransfer& start, bool both);
  // A group that Get() returned is broken. Without a key the next Get() makes a new one, unless that has
  // happened since.
  void Drop(const Group& group);

  // From now on it is none of those that live, and its groups are let go of: nothing can run in them any more.
  void Lose(int rank);
  bool IsGone(int rank) const { return gone_.contains(rank); }
  bool Serves(int rank) const { return servers_.contains(rank); }
  // How many it holds, without the world's.
  size_t size() const { return groups_.size() + keyed_.size(); }

 private:
  using Key =
      std::pair<bool, std::vector<int>>;  // whether it is one for parameters beside gradients
  struct Versioned {
    uint64_t version = 0;
    Group group;
  };
  Key KeyOf(const strategy::StartTransfer& start, bool both) const;
  absl::StatusOr<Group> GetByKey(const strategy::StartTransfer& start);

  Worker& worker_;
  const std::set<int> servers_;
  std::set<int> gone_;
  bool world_is_broken_ = false;
  std::map<Key, Versioned> groups_;
  std::deque<std::pair<GroupKey, Versioned>> keyed_;  // the newest last
};

}  // namespace syncopate::sync

#endif  // SYNCOPATE_SYNC_GROUP_CACHE_H_
