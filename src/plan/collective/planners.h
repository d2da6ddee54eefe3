// The planners of collectives: each a pure function from a request to a program, one algorithm a
// file. docs/collectives.md says what each is good for and what it costs.
//
// A planner answers every valid request: any number of workers, any active subset, any root,
// buffers that are empty or smaller than the number of workers. A request or options that are not
// valid give InvalidArgument, as does a program that would be larger than programs may be.
//
// Planners register themselves: a file src/plan/algorithms/some_name.cc defines
//   void RegisterSomeName(PlannerRegistry& registry);
// which the build calls for every file of that folder. Nothing outside of an algorithm's own files
// knows its name; what others want to know of it stands in its PlannerInfo.
#ifndef SYNCOPATE_PLAN_COLLECTIVE_PLANNERS_H_
#define SYNCOPATE_PLAN_COLLECTIVE_PLANNERS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/mutex.h"
#include "model/program.h"
#include "model/topology.h"
#include "plan/collective/request.h"
#include "plan/collective/shared_memory.h"

namespace syncopate::plan {

// Predictions so close together are alike; the planner that is listed first wins.
inline constexpr double kAlike = 1.001;

using Planner =
    std::function<absl::StatusOr<Program>(const CollectiveRequest&, const PlannerOptions&)>;

// What the selection plans for. It refers to its parts, which must outlive it. Not thread-safe.
class PlanningContext {
 public:
  PlanningContext(const CollectiveRequest& request_in, uint64_t bytes_per_element_in,
                  const Topology& topology_in, absl::Span<const int> placement_in)
      : request(request_in),
        bytes_per_element(bytes_per_element_in),
        topology(topology_in),
        placement(placement_in) {}

  // The groups of active workers that the topology names, as PlannerOptions::levels wants them.
  const std::vector<std::vector<std::vector<int>>>& levels() const;

  const CollectiveRequest& request;
  const uint64_t bytes_per_element;
  const Topology& topology;  // valid
  const absl::Span<const int> placement;
  std::optional<SharedMemory> memory;       // if all active workers share it
  bool asked = false;                       // the caller wants this planner and no other
  uint64_t chunk_bytes = 0;                 // only sub-chunks of this size; 0: several
  std::shared_ptr<const PlannerData> data;  // settings of one planner; null: none

 private:
  mutable std::optional<std::vector<std::vector<std::vector<int>>>> levels_;
};

// One way in which a planner can serve a request on a topology.
struct Variant {
  std::string name;  // for people: "by place", "4 servers"; empty: there is nothing to say
  PlannerOptions options = {};
  double slower = 1;  // from experience: how many times longer than the cost model says
  // The variant is the one before it with more steps. It is not tried if that one had too many.
  bool finer = false;
};

// What a program costs that runs step by step between hosts, roughly.
struct MessageCost {
  double rounds = 0;  // messages that follow each other
  double sent = 0;    // bytes that the busiest worker sends, for each byte of its data
};

struct PlannerInfo {
  std::string name;  // also Program::algorithm of what it makes
  Collective collective = Collective::kAllReduce;
  std::string summary;  // one line for people
  // Its place among the planners of the collective, the least first. The first is a sound choice
  // where nothing is known about the network, and of two alike the first is taken.
  int preference = 0;
  Planner plan;

  // What follows may be left out.

  // The ways in which it can serve the request. Without it there is one way, with no options.
  std::function<absl::StatusOr<std::vector<Variant>>(const PlanningContext&)> variants = {};
  // Why it is not tried unless it is asked for by name; empty if it is tried.
  std::function<std::string(const PlanningContext&)> limit = {};
  // About how many steps the program will have, so that one that is much too large is not made.
  // Without it the program is made and its steps are counted.
  std::function<uint64_t(uint64_t workers, const PlannerOptions&)> steps = {};
  // What it costs where the engine runs it as a whole in memory that all workers share. Without it
  // the engine runs it step by step.
  std::function<InPlaceCost(int workers)> in_place = {};
  // What it costs between hosts, with equal links and one piece. Without it the quick choice
  // (plan/collective/quick_choice.h) takes it only if it is the first of its collective.
  std::function<MessageCost(int workers)> by_messages = {};
  // The choice of its collective on one host, if no planner of the collective has `in_place`.
  bool for_hosts = false;
  // Its variants differ in how they cut the data, so PlannerOptions::pieces is not tried.
  bool cuts_by_variant = false;
  // Registered through the public interface.
  bool own = false;
};

// Thread-safe. Planners are never removed.
class PlannerRegistry {
 public:
  // AlreadyExists if the collective has a planner of that name, InvalidArgument if the name is
  // empty or has other characters than a-z, 0-9 and hyphens.
  absl::Status TryAdd(PlannerInfo planner);
  // Adds a planner of this library. Ends the program if it cannot be added.
  void Add(PlannerInfo planner);
  // All planners, sorted by collective, preference and name.
  std::vector<const PlannerInfo*> All() const;

 private:
  mutable Mutex mutex_;
  std::vector<std::unique_ptr<const PlannerInfo>> planners_ ABSL_GUARDED_BY(mutex_);  // sorted
};

// The planners of this process: those of this library, and what was added.
PlannerRegistry& Planners();

// Planners().All().
std::vector<const PlannerInfo*> AllPlanners();

// The planner of that name, or NotFound with the names that exist for the collective.
absl::StatusOr<const PlannerInfo*> FindPlanner(Collective collective, absl::string_view name);

// The program of the planner of that name.
absl::StatusOr<Program> PlanBy(absl::string_view name, const CollectiveRequest& request,
                               const PlannerOptions& options = {});

}  // namespace syncopate::plan

#endif  // SYNCOPATE_PLAN_COLLECTIVE_PLANNERS_H_
