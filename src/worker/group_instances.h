// How many groups the same members have made without a key, which gives each of them a name of its own.
//
// All members must count alike for as long as the job lives, so nothing of it can be forgotten, neither when
// a group is closed. A list of members is kept as its digest, and there is a limit on different lists: jobs
// whose groups change all the time bring keys (syncopate/group_key.h).
#ifndef SYNCOPATE_WORKER_GROUP_INSTANCES_H_
#define SYNCOPATE_WORKER_GROUP_INSTANCES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/digest.h"

namespace syncopate::worker {

// Not thread-safe.
class GroupInstances {
 public:
  explicit GroupInstances(size_t lists_max) : lists_max_(lists_max) {}

  // Groups that these members have made, in this order.
  uint64_t Of(const std::vector<int>& members) const {
    const auto found = made_.find(DigestOfList(members));
    return found == made_.end() ? 0 : found->second;
  }
  // ResourceExhausted if the list would be one too many.
  absl::Status CheckRoom(const std::vector<int>& members) const {
    if (made_.size() < lists_max_ || made_.contains(DigestOfList(members))) {
      return absl::OkStatus();
    }
    return absl::ResourceExhaustedError(absl::StrCat(
        "this worker has made groups of ", lists_max_,
        " different lists of members without a key, and remembers no more; give groups that "
        "change a key"));
  }
  // They have made one more.
  void Add(const std::vector<int>& members) { ++made_[DigestOfList(members)]; }
  size_t lists() const { return made_.size(); }

 private:
  static uint64_t DigestOfList(const std::vector<int>& members) {
    return DigestOf(absl::StrJoin(members, ",")).low;
  }

  const size_t lists_max_;
  absl::btree_map<uint64_t, uint64_t> made_;  // by the digest of the list
};

}  // namespace syncopate::worker

#endif  // SYNCOPATE_WORKER_GROUP_INSTANCES_H_
