#include "sync/group_cache.h"

#include "base/status.h"

namespace syncopate::sync {

GroupCache::Key GroupCache::KeyOf(strategy::Content content, const std::vector<int>& members,
                                  bool both) const {
  Key key{both && content == strategy::Content::kParameters, members};
  for (int rank = 0; members.empty() && rank < worker_.size(); ++rank) {
    if (!gone_.contains(rank)) key.second.push_back(rank);
  }
  return key;
}

absl::StatusOr<Group> GroupCache::Get(strategy::Content content, const std::vector<int>& members,
                                      bool both) {
  const Key key = KeyOf(content, members, both);
  const bool everybody = key.second.size() == static_cast<size_t>(worker_.size());
  // The network watch looks at the transfers of this one.
  if (everybody && !key.first && !world_is_broken_) return worker_.world();
  const auto found = groups_.find(key);
  if (found != groups_.end()) return found->second;
  SYNCOPATE_ASSIGN_OR_RETURN(Group group, worker_.NewGroup(key.second));
  return groups_.emplace(key, std::move(group)).first->second;
}

void GroupCache::Drop(strategy::Content content, const std::vector<int>& members, bool both) {
  const Key key = KeyOf(content, members, both);
  if (groups_.erase(key) > 0) return;
  if (key.second.size() == static_cast<size_t>(worker_.size())) world_is_broken_ = true;
}

}  // namespace syncopate::sync
