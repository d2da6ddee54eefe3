// Finds the compiled program that runs a call, and remembers it. Equal keys give equal programs on
// all workers, which compare digests before they run one.
//
// Between hosts the full plan (plan/collective/select.h) may take seconds, and a planner from outside may
// take long anywhere. So there is a quick choice for each call as well, and full plans are made beside, on
// threads of their own: one for those that calls wait for, one for those that calls run without meanwhile.
// When to change from one to the other is for the members of a group to agree on (worker/call_plans.h).
//
// Programs are kept by where their workers are, not by who they are: groups in like places
// (plan/collective/like_places.h) share them.
#ifndef SYNCOPATE_WORKER_PROGRAM_CACHE_H_
#define SYNCOPATE_WORKER_PROGRAM_CACHE_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "engine/compiled_program.h"
#include "plan/collective/like_places.h"
#include "plan/collective/quick_choice.h"
#include "plan/collective/select.h"
#include "plan/program_key.h"
#include "worker/network.h"

namespace syncopate::worker {

struct PlannedProgram {
  std::shared_ptr<const engine::CompiledProgram> program;
  uint64_t chunk_bytes = 0;  // size of the sub-chunks; 0: the planner does not cut data by size
};

// A full plan that is being made. Thread-safe.
class ComingPlan {
 public:
  bool done() const { return done_.load(std::memory_order_acquire); }
  // False: it was not done by then.
  bool WaitUntil(int64_t deadline_ns);
  // Once it is done.
  const absl::StatusOr<PlannedProgram>& result() const { return result_; }
  void Finish(absl::StatusOr<PlannedProgram> result);

 private:
  Mutex mutex_;
  CondVar finished_;
  absl::StatusOr<PlannedProgram> result_ = absl::UnavailableError("it is not planned yet");
  std::atomic<bool> done_{false};  // result_ does not change any more
};

// Thread-safe.
class ProgramCache {
 public:
  // `cores` is the number of the host's cores; a job on several hosts also has a network. Both are
  // the same on all workers, since the choice of an algorithm depends on them.
  explicit ProgramCache(int cores, std::optional<Network> network = std::nullopt);
  // Gives up the plans that are being made, after the programs that are just tried.
  ~ProgramCache();

  // OK if keys may name this version of the network.
  absl::Status CheckVersion(uint64_t version);

  // The program of the full plan. Plans it now, if it is not known: without a lock, as long as that
  // takes.
  absl::StatusOr<PlannedProgram> Get(const plan::ProgramKey& key);
  // The program of the quick choice.
  absl::StatusOr<PlannedProgram> GetQuick(const plan::ProgramKey& key);
  struct Offer {
    PlannedProgram now;   // no program: only the full plan will do
    bool better = false;  // the full plan is another one, which can be ordered
  };
  // What can be had at once. It does not depend on which full plans this worker knows.
  absl::StatusOr<Offer> Find(const plan::ProgramKey& key);
  // Whether the full plan is known.
  bool Knows(const plan::ProgramKey& key);
  // For whom something is made: for a call that waits for it, or for later ones.
  enum class For : uint8_t { kWaiting, kLater };
  // Has the full plan made beside, unless it is known.
  std::shared_ptr<ComingPlan> Order(const plan::ProgramKey& key, For whom = For::kLater);
  // Has a program made beside for a call that waits for it, by other means than planning.
  std::shared_ptr<ComingPlan> Order(std::function<absl::StatusOr<PlannedProgram>()> make);

  // From now on keys may name this version of the network. Of the versions before it, the first and
  // the last kVersionsMax are kept.
  void Publish(uint64_t version, const Topology& topology);

 private:
  static constexpr size_t kVersionsMax = 64;
  // Jobs make few different calls. One that makes many must not fill the memory: when there are
  // more, all are forgotten, and what is still used is planned again.
  static constexpr size_t kProgramsMax = 1024;
  static constexpr uint64_t kProgramBytesMax = uint64_t{64} << 20;

  // A network to plan for.
  struct Version {
    explicit Version(const Topology& topology_in)
        : topology(topology_in), places(topology_in), figures(plan::FiguresOf(topology_in)) {}
    const Topology topology;
    const plan::LikePlaces places;
    const plan::NetworkFigures figures;
  };
  // Programs with a bound on their memory.
  class Programs {
   public:
    const PlannedProgram* Find(const plan::ProgramKey& key) const;
    void Add(const plan::ProgramKey& key, const PlannedProgram& planned);

   private:
    absl::flat_hash_map<plan::ProgramKey, PlannedProgram, plan::ProgramKeyHash> programs_;
    uint64_t bytes_ = 0;
  };
  struct Queued {
    std::optional<plan::ProgramKey> key;  // its place in coming_
    std::function<absl::StatusOr<PlannedProgram>()> make;
    std::shared_ptr<ComingPlan> plan;
  };
  // A thread, which begins with the first plan that it makes, and what it is to make.
  struct Desk {
    std::deque<Queued> queue;
    CondVar queued;
    std::thread thread;
  };

  // The network that the key's workers are on, and the key with their places instead of their
  // ranks; null if all of them are on one host.
  std::pair<plan::ProgramKey, std::shared_ptr<const Version>> Place(const plan::ProgramKey& key);
  // By a placed key.
  absl::StatusOr<PlannedProgram> GetPlaced(const plan::ProgramKey& key,
                                           const std::shared_ptr<const Version>& version);
  absl::StatusOr<PlannedProgram> Plan(const plan::ProgramKey& key, const Version* version);
  absl::StatusOr<PlannedProgram> PlanByFormula(const plan::ProgramKey& key, const Version& version);
  absl::StatusOr<Program> PlanForHost(const plan::ProgramKey& key) const;
  // The choice for calls of about this size: gradients come in many sizes, and choosing takes long.
  absl::StatusOr<std::shared_ptr<const plan::Selection>> ChoiceFor(plan::ProgramKey key,
                                                                   const Version& version);
  std::shared_ptr<const Version> FindVersion(uint64_t version)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Desk& DeskFor(For whom) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return desks_[static_cast<size_t>(whom)];
  }
  void Add(Desk& desk, Queued queued) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // What nobody has begun to make for later is made for a call that waits.
  void Hasten(const ComingPlan* plan) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MakePlans(Desk& desk);  // what its thread runs

  const int cores_;
  const std::vector<int> placement_;            // by rank; empty: the job is on one host
  const std::shared_ptr<const Version> first_;  // null: the job is on one host
  const std::function<bool()> stop_;            // planning is given up
  std::atomic<bool> stopping_{false};           // written under the mutex
  Mutex mutex_;
  std::deque<std::shared_ptr<const Version>> published_ ABSL_GUARDED_BY(mutex_);
  Programs programs_ ABSL_GUARDED_BY(mutex_);
  Programs quick_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<plan::ProgramKey, std::shared_ptr<const plan::Selection>,
                      plan::ProgramKeyHash>
      choices_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<plan::ProgramKey, std::shared_ptr<ComingPlan>, plan::ProgramKeyHash> coming_
      ABSL_GUARDED_BY(mutex_);
  Desk desks_[2] ABSL_GUARDED_BY(mutex_);  // by For
};

}  // namespace syncopate::worker

#endif  // SYNCOPATE_WORKER_PROGRAM_CACHE_H_
