// A group of the public interface: it checks a call, finds its program, and gives both to the engine.
//
// Every worker must come to the same program for the same call without asking the others. All that
// the choice depends on is therefore the same on all workers: the call, the group, the rules, the
// version of the network, and the sub-chunks that the tuner tries.
#ifndef SYNCOPATE_WORKER_GROUP_IMPL_H_
#define SYNCOPATE_WORKER_GROUP_IMPL_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "adapt/chunk_tuner.h"
#include "adapt/network_watch.h"
#include "base/mutex.h"
#include "engine/engine.h"
#include "plan/program_key.h"
#include "syncopate/syncopate.h"
#include "worker/call_plans.h"
#include "worker/engine_vote.h"
#include "worker/worker_impl.h"

namespace syncopate::internal {

// Thread-safe.
class GroupImpl {
 public:
  // `version_in`: of the network, to plan by. `world_in`: it is the worker's world group, whose calls
  // follow the versions of the network watch instead.
  GroupImpl(std::shared_ptr<WorkerImpl> worker_in, std::shared_ptr<engine::EngineGroup> group,
            uint64_t version_in = 0, bool world_in = false)
      : worker(std::move(worker_in)),
        members(group->members),
        self(group->self),
        version(version_in != 0 || !worker->network ? version_in
                                                    : worker->network->topology.version),
        world(world_in),
        watch(worker->watch.get()),
        tuner(world ? worker->tuner.get() : nullptr),
        group_(std::move(group)),
        last_version_(version),
        odd_(worker->network ? std::make_shared<std::atomic<bool>>(false) : nullptr),
        votes_(worker->engine, worker->programs),
        plans_(worker->programs, [this](bool yes) { return StartVote(yes); }) {}

  ~GroupImpl() { Close(); }

  int size() const { return static_cast<int>(members.size()); }

  // See Group::Run.
  absl::Status Run(const Call& call);

  // See Group::AwaitPlan.
  absl::Status AwaitPlan(const Call& call);

  // Operations under way keep the group until they end.
  void Close();

  // From a call to what the engine starts; refused where it would wait and must not
  // (worker/prompt_start.h). Whatever it waits for, and the operation after it, meet one deadline, which is
  // fixed when it begins.
  //
  // A call takes its place among those of the group before it waits for its plan, so that calls of several
  // threads begin in the order in which they came; only then does it count. So a call whose plan is not
  // made in time has not happened, and can be made again. Where a member is lost meanwhile, what is returned
  // is an operation that fails for it.
  absl::StatusOr<engine::OperationSpec> Prepare(const Call& call);

  const std::shared_ptr<WorkerImpl> worker;
  const std::vector<int> members;  // ranks of the job
  const int self;                  // this worker's place among them
  const uint64_t version;          // of the network, to plan by where it is not watched
  const bool world;
  adapt::NetworkWatch* const watch;  // the worker's own; null: the network is not watched
  adapt::ChunkTuner* const tuner;    // the worker's own, for its world group; null: for no other

 private:
  int64_t TimeoutNs(const Call& call) const {
    return call.timeout ? absl::ToInt64Nanoseconds(*call.timeout) : worker->timeout_ns;
  }

  // How long a call waits for something here, and whether it may.
  struct Patience {
    int64_t deadline_ns = 0;
    bool prompt = false;  // it must not wait at all
  };
  enum class Waited : uint8_t {
    kOver,    // it has come
    kLate,    // the deadline came first
    kLost,    // a member of the group is lost
    kClosed,  // this worker has let go of the group
    kRefused  // it has not come, and the call must not wait
  };

  // Whether Prepare() would wait for other workers. What it would wait for is under way then. Nobody else
  // starts calls of this group meanwhile.
  bool WouldWait(const Call& call);

  bool MemberIsLost() const;
  Waited Await(worker::ComingPlan& coming, const Patience& patience) ABSL_LOCKS_EXCLUDED(mutex_);
  // What Prepare() returns for a call that waited in vain; `what` had not come.
  absl::StatusOr<engine::OperationSpec> Instead(const Call& call, const Patience& patience,
                                                Waited waited, absl::string_view what)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Closed(const Call& call) const;

  // Calls have their place one after the other: until LeavePlace() no other call begins here.
  Waited TakePlace(const Patience& patience) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LeavePlace() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // The call has its place; `own` is the program that it brings, if it does. The lock is released while it
  // waits.
  absl::StatusOr<engine::OperationSpec> PrepareInPlace(
      const Call& call, const std::shared_ptr<const engine::CompiledProgram>& own,
      const Patience& patience) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Has the program read that a call brings, beside, unless it is known.
  std::shared_ptr<worker::ComingPlan> OrderOwn(const Call& call);
  // It is done, and the call that needs it has it.
  void ForgetReading(const worker::ComingPlan& read);

  absl::StatusOr<std::unique_ptr<worker::PlanVote>> StartVote(bool yes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // A full plan without which call `number` cannot begin and which is not made yet: ordered, and named for
  // messages. None: nothing is missing.
  struct Missing {
    std::shared_ptr<worker::ComingPlan> plan;
    std::string name;
  };
  absl::StatusOr<Missing> FindMissing(const Call& call,
                                      const std::shared_ptr<const engine::CompiledProgram>& own,
                                      int64_t number, uint64_t network_version)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // `number` is that of the call, which waits for others until the deadline at most; nothing is missing for it.
  // `took` is set to where the time of this call goes, if the tuner wants it.
  absl::StatusOr<std::shared_ptr<const engine::CompiledProgram>> ProgramFor(
      const Call& call, const std::shared_ptr<const engine::CompiledProgram>& own, int64_t number,
      uint64_t network_version, int64_t deadline_ns, std::shared_ptr<std::atomic<int64_t>>& took)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Whether it is like the last one, whose program is known.
  bool IsLikeLast(const Call& call) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether calls of the last kind may run with sub-chunks of other sizes.
  bool Tunes() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return tuner != nullptr && last_ != nullptr && last_->serving.chunk_bytes != 0;
  }

  // Sets last_ to the kind of this call, or last_own_ to the program that it brings. Returns the plan without
  // which there is neither.
  absl::StatusOr<std::shared_ptr<worker::ComingPlan>> FindKind(
      const Call& call, const std::shared_ptr<const engine::CompiledProgram>& own,
      uint64_t network_version) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  plan::ProgramKey KeyOf(const Call& call, uint64_t network_version) const;

  // What serves calls of this kind, with the sub-chunks that the tuner advises.
  absl::StatusOr<std::shared_ptr<const engine::CompiledProgram>> Refined(
      const worker::CallPlans::Kind& kind, int64_t number,
      std::shared_ptr<std::atomic<int64_t>>& took) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  std::atomic<int64_t> calls_{0};  // that have begun here
  Mutex mutex_;
  // A call has its place; those that wait for theirs, in order, each known by an address of its own.
  bool in_place_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<const void*> line_ ABSL_GUARDED_BY(mutex_);
  CondVar place_free_;
  std::shared_ptr<engine::EngineGroup> group_ ABSL_GUARDED_BY(mutex_);  // null: closed
  uint64_t last_version_ ABSL_GUARDED_BY(mutex_);                       // of the last call
  // Set when members made different calls: from then on they may count calls differently. Null on one
  // host, where there is nothing to count for.
  const std::shared_ptr<std::atomic<bool>> odd_;
  int64_t vote_deadline_ns_ ABSL_GUARDED_BY(mutex_) = 0;  // that of the call beside a vote
  worker::EngineVotes votes_ ABSL_GUARDED_BY(mutex_);
  worker::CallPlans plans_ ABSL_GUARDED_BY(mutex_);
  // The last call: its kind, or the program that it brought.
  worker::CallPlans::Kind* last_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::shared_ptr<const engine::CompiledProgram> last_own_ ABSL_GUARDED_BY(mutex_);
  plan::CollectiveRequest last_request_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_element_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  // The last text of a program that was to be read, which goes on where the call that brought it is over.
  struct Reading {
    plan::ProgramKey key;
    std::string text;
    std::shared_ptr<worker::ComingPlan> program;
  };
  std::unique_ptr<Reading> reading_ ABSL_GUARDED_BY(mutex_);
  // Its fields as it had them, before defaults were filled in.
  std::string last_algorithm_ ABSL_GUARDED_BY(mutex_);
  std::string last_text_ ABSL_GUARDED_BY(mutex_);
  std::vector<uint64_t> last_blocks_ ABSL_GUARDED_BY(mutex_);
  std::vector<int> last_active_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace syncopate::internal

#endif  // SYNCOPATE_WORKER_GROUP_IMPL_H_
