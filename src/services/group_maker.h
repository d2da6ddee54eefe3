// The group generator without messages: which workers average together, and when. Ripples/Prague's rules
// (group_rules.h), on workers that ask for a group when they have computed and say when their part in it is over.
//
// Groups are in one order, that of their keys. A worker is in any number of groups that have not begun; its groups
// come to it in that order. A group *begins* when it is the oldest of each of its members and all of them have
// asked. So nobody waits in a group for a member that is busy elsewhere: all waiting happens here, the oldest
// group of all is never held up, and nothing can stand still as long as workers ask. A worker that dies leaves its
// groups: one that has not begun is smaller, one that has begun is over when all others have said so.
//
// Deterministic: the same calls with the same times have the same outcome, by the seed. Not thread-safe.
#ifndef SYNCOPATE_SERVICES_GROUP_MAKER_H_
#define SYNCOPATE_SERVICES_GROUP_MAKER_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/bytes.h"
#include "base/random.h"
#include "model/strategy_message.h"
#include "services/group_rules.h"
#include "services/group_union.h"

namespace syncopate::services {

// Why a group was made.
enum class GroupPhase : uint8_t {
  kAny,      // by a request of its own
  kDivided,  // by a division of all that were in none
  kHeads,    // heads of nodes
  kNode,     // within a node
  kArrived,  // they asked first
  kJoining,  // joins parts that had nothing to do with each other
  kLast,     // all, at the end of the job
};
absl::string_view NameOf(GroupPhase phase);

// What a worker is told.
struct GivenGroup {
  int rank = -1;
  GroupKey key = {};
  std::vector<int> members = {};  // sorted; the rank alone: it goes on by itself
  GroupPhase phase = GroupPhase::kAny;
  uint64_t version = 0;  // of the network
  bool stop = false;     // the job has come to its end
  bool first = true;     // the first of the members to be told
};

// Since the beginning.
struct GroupCounts {
  uint64_t requests = 0;
  uint64_t groups = 0;     // of two and more, that have begun
  uint64_t conflicts = 0;  // groups with a member that was in an older one when they were made
  uint64_t alone = 0;      // requests after which the worker went on by itself
  int64_t waiting_ns = 0;  // of all workers, from request to answer

  friend bool operator==(const GroupCounts&, const GroupCounts&) = default;
};

class GroupMaker {
 public:
  struct Moment {
    int64_t now_ns = 0;
    uint64_t maker = 0;  // of the keys that are made
  };

  // Both must be valid.
  GroupMaker(const GroupRules& rules, const GroupJob& job);

  // The worker has computed and wants to average. It is told at once or later, in `given`; an error says what
  // it did wrong, and changes nothing.
  absl::Status Want(const Moment& moment, int rank, const WantGroup& want,
                    std::vector<GivenGroup>& given);
  // Its part in the group is over. Returns whether it goes on now; else it is told of its next group, at once or
  // later, as if it had asked. A group that it is not in, or that has not begun, is ignored: it was told twice.
  bool Done(const Moment& moment, int rank, const GroupKey& key, std::vector<GivenGroup>& given);
  void Gone(const Moment& moment, int rank, std::vector<GivenGroup>& given);
  // It counts as if it had asked as often as the middle one of the others.
  void Came(int rank);

  const GroupCounts& counts() const { return counts_; }
  uint64_t total_samples() const { return total_samples_; }
  bool stopping() const { return last_ >= 0; }
  bool IsLive(int rank) const {
    return static_cast<size_t>(rank) < workers_.size() && workers_[static_cast<size_t>(rank)].live;
  }
  bool Waits(int rank) const { return workers_[static_cast<size_t>(rank)].waits; }

  // What a worker knew when nobody else did any more (docs/services.md).
  struct Known {
    int rank = -1;
    uint64_t requests = 0;
    uint64_t total_samples = 0;
    GroupKey key = {};  // of the group that it was told and that is not over for it; (0, 0): none
    std::vector<int> members = {};
    bool started = false;  // its average
  };
  // In the state after the constructor: goes on from what the live workers know. A group that anybody has started
  // is kept, one that nobody has is dissolved.
  absl::Status Rebuild(const std::vector<Known>& known);
  // In the state after the constructor: goes on from counts and samples of another job's state, in which the
  // workers had these ranks.
  absl::Status Resume(absl::string_view state, const std::vector<int>& ranks);

  void AppendState(std::string& out) const;
  void ReadState(ByteReader& reader);

 private:
  struct Group {
    GroupKey key = {};  // (0, 0): this place is free
    std::vector<int> members;
    GroupPhase phase = GroupPhase::kAny;
    bool begun = false;
    int ready = 0;  // members whose oldest group this is, and that have asked
    int open = 0;   // members for which it is not over
  };
  struct Worker {
    bool live = false;
    bool waits = false;  // it has asked, and was not told yet
    bool told = false;   // of its oldest group, which has begun
    int64_t requests = 0;
    int64_t asked_ns = 0;
    int64_t told_ns = 0;
    double busy_seconds = 0;  // usually, from what it is told to its next request
    int alone = 0;            // in a row
    uint64_t version = 0;
    absl::InlinedVector<int, 4> groups;  // places in groups_, oldest first
    int idle_at = -1;  // place among those that are in no group and asked as often
  };
  using Workers = std::vector<int>;

  Worker& at(int rank) { return workers_[static_cast<size_t>(rank)]; }
  const Worker& at(int rank) const { return workers_[static_cast<size_t>(rank)]; }
  Group& group(int place) { return groups_[static_cast<size_t>(place)]; }
  int NodeOf(int rank) const;

  // ---- who is in no group (idle), by how often it has asked
  void AddIdle(int rank);
  void RemoveIdle(int rank);

  // ---- making groups (group_division.cc)
  Random Draw() { return Random(job_.seed + 0x9e3779b97f4a7c15u * ++draws_); }
  void MakeGroups(const Moment& moment, int rank);
  // Idle workers that may be in groups that this one makes, with itself; sorted.
  Workers Eligible(const Moment& moment, int rank) const;
  bool Lags(const Worker& worker, const Worker& maker) const;
  bool ComesSoon(const Moment& moment, const Worker& worker) const;
  void Divide(const Moment& moment, int rank);
  void DivideInPhases(const Moment& moment, const Workers& members, Random& random);
  // Into groups of about `size`. A group of one is an entry by which its worker goes on by itself.
  void MakeRandomGroups(const Moment& moment, Workers members, int size, GroupPhase phase,
                        Random& random);
  void MakeAnyGroup(const Moment& moment, int rank);
  void MakeArrived(const Moment& moment);
  void MakeJoining(const Moment& moment);
  int Make(const Moment& moment, Workers members, GroupPhase phase);

  // ---- their life
  void Ask(const Moment& moment, int rank, std::vector<GivenGroup>& given);
  void GoOnAlone(const Moment& moment, int rank, std::vector<GivenGroup>& given);
  void BeginIfReady(const Moment& moment, int place, std::vector<GivenGroup>& given);
  void BeginAllReady(const Moment& moment, std::vector<GivenGroup>& given);
  void Tell(const Moment& moment, int rank, const Group& group, uint64_t version, bool first,
            std::vector<GivenGroup>& given);
  // The group is over for the worker, whose oldest it is.
  void Leave(int rank, int place);
  void Free(int place);
  // The worker's oldest group is another one than before.
  void FrontChanged(int rank);
  void Stop(const Moment& moment);
  void Dissolve(int place);

  const GroupRules rules_;
  const GroupJob job_;
  std::vector<Worker> workers_;
  std::vector<int> live_;
  std::vector<Group> groups_;
  std::vector<int> free_;
  std::vector<int> touched_;  // places that may be ready
  std::map<int64_t, Workers> idle_;
  Workers arrived_;  // where the first that ask are a group: those that wait for others
  GroupUnion union_;
  int64_t joined_epoch_ = -1;  // for which joining groups were made
  uint64_t draws_ = 0;
  uint64_t made_ = 0;  // keys
  uint64_t total_samples_ = 0;
  double average_seconds_ = 0;  // usually, from when a group begins until it is over for a member
  int last_ = -1;               // the place of the job's last group
  GroupCounts counts_;
};

}  // namespace syncopate::services

#endif  // SYNCOPATE_SERVICES_GROUP_MAKER_H_
