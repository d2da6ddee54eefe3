// One worker's side of groups and operations in shared memory.
#ifndef SYNCOPATE_TRANSPORT_SHM_SHM_SESSION_H_
#define SYNCOPATE_TRANSPORT_SHM_SHM_SESSION_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "transport/shm/control.h"
#include "transport/shm/group_entries.h"
#include "transport/shm/peers.h"
#include "transport/transport.h"

namespace syncopate::transport::shm {

// Hands out the flags that sessions with many steps need, from the worker's own control memory. Not
// thread-safe.
class FlagHeap {
 public:
  // The first of `count` flags, or nothing if there is no such run.
  std::optional<uint32_t> Take(uint32_t count);
  void Give(uint32_t first, uint32_t count);

 private:
  std::vector<std::pair<uint32_t, uint32_t>> free_ = {{0, kHeapFlags}};  // first, count; sorted
};

// What all groups of a worker share. The heap and the generation are used by one thread at a time.
struct SessionContext {
  explicit SessionContext(Peers& peers_in) : peers(peers_in), entries(peers_in) {}
  Peers& peers;
  FlagHeap heap = {};
  uint64_t generation = 0;  // last one used for flags
  GroupEntries entries;
};

class ShmGroupPort final : public GroupPort {
 public:
  // Takes an entry of the worker's own control memory.
  static absl::StatusOr<std::unique_ptr<ShmGroupPort>> Make(SessionContext& context, uint64_t key,
                                                            const std::vector<int>& members);
  ~ShmGroupPort() override;

  bool direct() const override { return true; }
  bool Failed() override;
  bool Renounced() override;
  absl::StatusOr<std::unique_ptr<Session>> Open(const SessionSpec& spec) override;

 private:
  friend class ShmSession;
  ShmGroupPort(SessionContext& context, uint64_t key, std::vector<int> members, int self,
               const FoundEntry& own);
  // The entry of `member`, or null if it has not made the group yet.
  GroupEntry* EntryOf(int member);
  // The first member has let go of the group. It does so only when all gates that it saw have
  // passed. Its entry is known.
  bool LeaderLeft() const { return leader_key_->load(std::memory_order_acquire) != key_; }
  void RingOthers();

  SessionContext& context_;
  const uint64_t key_;
  const std::vector<int> members_;
  const int self_;
  const uint64_t first_generation_;  // of gates; differs from group to group
  const uint64_t everybody_;         // the mask of a gate that has passed
  const FoundEntry own_;
  std::vector<GroupEntry*> entries_;  // by member; null until found
  // The key of the first member's entry, as long as it is this group's; null until found.
  const std::atomic<uint64_t>* leader_key_ = nullptr;
  // By slot: the sequence that it is free for, or kBusy. A slot serves its sequences in order.
  static constexpr uint64_t kBusy = ~uint64_t{0};
  uint64_t free_for_[kSlots];
  // A session ended before all had finished (a gate broke, or this worker leaves): peers may still
  // look at the entry, so no other group gets it before they have let go of this one.
  bool keep_entry_ = false;
};

}  // namespace syncopate::transport::shm

#endif  // SYNCOPATE_TRANSPORT_SHM_SHM_SESSION_H_
