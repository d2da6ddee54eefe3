// The groups of two in which one worker moves values to another: for what it pushes to a server and
// pulls from it, and for exchanges with neighbours.
//
// Each pair has a group for each purpose and direction, because each of these starts its calls in an
// order of its own. Their keys are made of pair, purpose and a number, so both find the same group
// whatever others they have made; one that breaks, or is not of the version of the network that is wanted,
// is replaced by one with the next number.
//
// Not thread-safe.
#ifndef SYNCOPATE_SYNC_PAIR_GROUPS_H_
#define SYNCOPATE_SYNC_PAIR_GROUPS_H_

#include <compare>
#include <cstdint>
#include <map>
#include <optional>

#include "absl/status/statusor.h"
#include "syncopate/syncopate.h"

namespace syncopate::sync {

// Of one worker towards another. In its group `from` has rank 0 and `to` rank 1.
struct Pair {
  enum class Purpose : uint8_t { kServing, kExchange };
  Purpose purpose = Purpose::kServing;
  int from = 0;  // who asks to be served; who sends
  int to = 0;    // who serves; who receives

  friend auto operator<=>(const Pair&, const Pair&) = default;
};

class PairGroups {
 public:
  // `worker` must outlive it.
  explicit PairGroups(Worker& worker) : worker_(worker) {}

  // The pair's group, planned by this version of the network, which is made if there is none. The other one
  // makes the same if it wants the same versions in the same order.
  absl::StatusOr<Group> Get(const Pair& pair, uint64_t version);
  // Of which number that group is.
  uint64_t NumberOf(const Pair& pair) const;
  // The group of this number and version, as the other one said; one of an earlier number is let go.
  absl::StatusOr<Group> Get(const Pair& pair, uint64_t version, uint64_t number);
  // The group of this number is broken.
  void Drop(const Pair& pair, uint64_t number);

 private:
  struct Entry {
    uint64_t number = 0;
    uint64_t version = 0;  // of the group, if there is one
    std::optional<Group> group = {};
  };
  absl::StatusOr<Group> Make(const Pair& pair, uint64_t version, uint64_t number);

  Worker& worker_;
  std::map<Pair, Entry> groups_;
};

}  // namespace syncopate::sync

#endif  // SYNCOPATE_SYNC_PAIR_GROUPS_H_
