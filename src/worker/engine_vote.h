// Votes of a group's members by the engine, beside the group's own calls.
#ifndef SYNCOPATE_WORKER_ENGINE_VOTE_H_
#define SYNCOPATE_WORKER_ENGINE_VOTE_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "engine/engine.h"
#include "worker/call_plans.h"
#include "worker/program_cache.h"

namespace syncopate::worker {

// Starts votes in a group of its own with the same members, made at the first one: what a member
// votes must not come between the group's calls. Not thread-safe.
class EngineVotes {
 public:
  // The engine and the cache must outlive it.
  EngineVotes(engine::Engine& engine, ProgramCache& programs)
      : engine_(engine), programs_(programs) {}

  // `group` is that of which the members vote; those that have not voted at the deadline are late.
  absl::StatusOr<std::unique_ptr<PlanVote>> Start(const engine::EngineGroup& group, bool yes,
                                                  int64_t deadline_ns);
  // The group is closed: no more votes.
  void Close() {
    if (votes_ != nullptr) votes_->port->Hurry();
    votes_ = nullptr;
  }

 private:
  engine::Engine& engine_;
  ProgramCache& programs_;
  std::shared_ptr<engine::EngineGroup> votes_;  // null until the first vote
};

}  // namespace syncopate::worker

#endif  // SYNCOPATE_WORKER_ENGINE_VOTE_H_
