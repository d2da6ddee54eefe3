// The programs that the calls of one group run.
//
// A call that is new to the group runs at once by a quick choice that all members make alike; where it names
// its algorithm, or there is no quick choice, it needs its full plan first. When it
// comes again its full plan is made, beside: groups that are used once have none. When the network changes,
// the plan of the old version serves until that of the new one is made. The change to a new plan comes at
// the same call for all members, by their vote: at their calls 2, 4, 8 ... since it was ordered each says
// beside the call whether it has the plan, and at the next call all know whether all have it. Only there
// may a member wait for others, namely until they have come to the call before; and a reduction settles
// what all know, also when a member is lost.
#ifndef SYNCOPATE_WORKER_CALL_PLANS_H_
#define SYNCOPATE_WORKER_CALL_PLANS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "plan/program_key.h"
#include "worker/program_cache.h"

namespace syncopate::worker {

// A vote of a group's members. All get the same outcome, or an error.
class PlanVote {
 public:
  virtual ~PlanVote() = default;
  // Whether all said yes. Waits for the others to have voted, until the vote's own deadline or this one,
  // whichever is first: a vote that has not ended by then fails, for all.
  virtual absl::StatusOr<bool> Outcome(int64_t deadline_ns) = 0;
  // Whether Outcome() would return at once.
  virtual bool Done() const = 0;
};

// Not thread-safe. All members make the same calls in the same order.
class CallPlans {
 public:
  // Starts a vote beside the call that follows.
  using StartVote = std::function<absl::StatusOr<std::unique_ptr<PlanVote>>(bool yes)>;

  // The cache must outlive it.
  CallPlans(ProgramCache& cache, StartVote start_vote)
      : cache_(cache), start_vote_(std::move(start_vote)) {}

  // The calls of one kind: they differ in the version of the network at most.
  struct Kind {
    plan::ProgramKey key;  // of the plan that serves
    PlannedProgram serving;
    bool better = false;                 // there is a plan that is not ordered yet
    std::shared_ptr<ComingPlan> coming;  // null: none is ordered
    // Of the last call.
    uint64_t version = 0;

    // The key of the plan that is better or coming, the calls since it is known that there is one, and the
    // vote about it that runs.
    plan::ProgramKey coming_key;
    uint64_t calls = 0;
    std::unique_ptr<PlanVote> vote;
  };

  // The kind of a call with this key. It stays where it is. Null: it needs the full plan, which Awaited() has
  // made.
  absl::StatusOr<Kind*> KindOf(const plan::ProgramKey& key);
  // Before each call of the kind, by this version of the network: afterwards `serving` is what it
  // runs. Waits for others until the deadline at most.
  absl::Status BeforeCall(Kind& kind, uint64_t version, int64_t deadline_ns);
  // Whether BeforeCall() of a call with this key would wait for others.
  bool WouldWait(const plan::ProgramKey& key) const;
  // The full plan of this key, for a call that cannot begin without it. It is made beside from the first time
  // on that this is asked. Null: it is done, well or not.
  std::shared_ptr<ComingPlan> Awaited(const plan::ProgramKey& key);
  // Then this is the plan, or why there is none.
  absl::StatusOr<PlannedProgram> Get(const plan::ProgramKey& key) const;
  // True if BeforeCall() has nothing to do for this version.
  static bool IsSettled(const Kind& kind, uint64_t version) {
    return !kind.better && kind.coming == nullptr && kind.vote == nullptr &&
           kind.version == version;
  }
  // Orders the plan of the kind now, if there is one to come.
  void Order(Kind& kind);
  // From now on nothing changes any more: members may not count calls alike.
  void Freeze() { frozen_ = true; }
  // All members have the plan that was to come, and are between the same two calls: it serves from
  // now on.
  static void Switch(Kind& kind);

 private:
  // Calls of more kinds keep to their quick choices.
  static constexpr size_t kKindsMax = 4096;

  absl::Status Ask(Kind& kind, uint64_t version);

  ProgramCache& cache_;
  const StartVote start_vote_;
  absl::flat_hash_map<plan::ProgramKey, std::unique_ptr<Kind>, plan::ProgramKeyHash> kinds_;
  // Full plans that calls cannot begin without, also those that failed.
  absl::flat_hash_map<plan::ProgramKey, std::shared_ptr<ComingPlan>, plan::ProgramKeyHash> awaited_;
  bool frozen_ = false;
  std::unique_ptr<Kind> passing_;  // the last kind that was not kept
};

}  // namespace syncopate::worker

#endif  // SYNCOPATE_WORKER_CALL_PLANS_H_
