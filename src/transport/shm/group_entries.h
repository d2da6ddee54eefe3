// The entries that a worker's groups take in its control memory, and how the other members find them.
//
// An index from keys to entries stands beside them: its owner writes it, all others read it without a lock.
// Entries are taken as low as there are free ones, and so are levels of the index, so that a job of many
// short groups touches no more memory than one of few.
#ifndef SYNCOPATE_TRANSPORT_SHM_GROUP_ENTRIES_H_
#define SYNCOPATE_TRANSPORT_SHM_GROUP_ENTRIES_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <queue>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "transport/shm/control.h"
#include "transport/shm/peers.h"

namespace syncopate::transport::shm {

// The generation of a group's gates before its first session.
uint64_t FirstGeneration(uint64_t key);

// A group's entry in the control memory of one of its members.
struct FoundEntry {
  GroupEntry* entry = nullptr;  // null: that member has not made the group, or has let it go
  // Holds the group's key for as long as the entry is the group's.
  std::atomic<uint64_t>* key = nullptr;
};
FoundEntry FindEntry(Control& control, uint64_t key);

// Whether the owner of `control` has let go of the group, or has said that it will not make it. It may
// be forgotten after very many others.
bool HasRenounced(const Control& control, uint64_t key);

// Tells the owner of `entry` that `member` of the group has let go of it.
void TellLetGo(GroupEntry& entry, uint64_t key, int member);

// Thread-safe.
class GroupEntries {
 public:
  // `peers` must outlive it.
  explicit GroupEntries(Peers& peers);

  // An entry for the group, which the others find from now on. AlreadyExists if it has one,
  // ResourceExhausted if there is none left.
  absl::StatusOr<FoundEntry> Take(uint64_t key);
  // The group is let go here. `kept`: others may still have to look at its entry, so no other group gets
  // it before every other live member has let go, too. `self` is this worker's place among the members.
  void Give(const FoundEntry& given, const std::vector<int>& members, int self, bool kept);
  // This worker will not make the group.
  void Renounce(uint64_t key);

 private:
  struct Kept {
    FoundEntry found;
    uint64_t key = 0;
    int self = 0;
    std::vector<int> members;
  };

  // A free place of the index for the key; null: there is none.
  IndexPlace* FindPlace(uint64_t key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Free(const FoundEntry& found) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Frees those of the kept entries at which nobody looks any more; of many, some at a time.
  void FreeKept() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsNeeded(const Kept& kept) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Peers& peers_;
  Mutex mutex_;
  // That were used before; the lowest is next.
  std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> free_
      ABSL_GUARDED_BY(mutex_);
  uint32_t untouched_ ABSL_GUARDED_BY(mutex_) = 0;  // it and all above were never used
  std::deque<Kept> kept_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace syncopate::transport::shm

#endif  // SYNCOPATE_TRANSPORT_SHM_GROUP_ENTRIES_H_
