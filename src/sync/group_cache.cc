#include "sync/group_cache.h"

#include <algorithm>

#include "base/status.h"

namespace syncopate::sync {
namespace {

// A worker may be in as many groups with keys at once. A job has any number of them over its life.
constexpr size_t kKeyedMax = 64;

}  // namespace

GroupCache::Key GroupCache::KeyOf(const strategy::StartTransfer& start, bool both) const {
  Key key{both && start.content == strategy::Content::kParameters, start.members};
  for (int rank = 0; start.members.empty() && rank < worker_.size(); ++rank) {
    if (!gone_.contains(rank) && !Serves(rank)) key.second.push_back(rank);
  }
  return key;
}

absl::StatusOr<Group> GroupCache::Get(const strategy::StartTransfer& start, bool both) {
  if (start.key != GroupKey{}) return GetByKey(start);
  const Key key = KeyOf(start, both);
  const bool everybody = key.second.size() == static_cast<size_t>(worker_.size());
  // The network watch looks at the transfers of this one.
  if (everybody && !key.first && !world_is_broken_) return worker_.world();
  const auto found = groups_.find(key);
  if (found != groups_.end() && found->second.version == start.version) return found->second.group;
  SYNCOPATE_ASSIGN_OR_RETURN(Group group, worker_.NewGroup(key.second, start.version));
  if (found != groups_.end()) groups_.erase(found);
  return groups_.emplace(key, Versioned{start.version, std::move(group)}).first->second.group;
}

absl::StatusOr<Group> GroupCache::GetByKey(const strategy::StartTransfer& start) {
  for (const auto& [key, made] : keyed_) {
    if (key == start.key && made.version == start.version) return made.group;
  }
  SYNCOPATE_ASSIGN_OR_RETURN(
      Group group, worker_.NewGroup(KeyOf(start, /*both=*/false).second, start.key, start.version));
  keyed_.emplace_back(start.key, Versioned{start.version, std::move(group)});
  if (keyed_.size() > kKeyedMax) keyed_.pop_front();
  return keyed_.back().second.group;
}

// What is under way in them keeps them until it has ended.
void GroupCache::Lose(int rank) {
  gone_.insert(rank);
  const auto has_it = [rank](const auto& entry) {
    const std::vector<int>& members = entry.second.group.members();
    return std::find(members.begin(), members.end(), rank) != members.end();
  };
  std::erase_if(groups_, has_it);
  std::erase_if(keyed_, has_it);
}

// A key is used once, so whoever brings a broken one again gets its errors. Copies of a group have its members
// in one place.
void GroupCache::Drop(const Group& group) {
  const auto is_it = [&](const Group& other) { return &other.members() == &group.members(); };
  std::erase_if(groups_, [&](const auto& entry) { return is_it(entry.second.group); });
  if (is_it(worker_.world())) world_is_broken_ = true;
}

}  // namespace syncopate::sync
