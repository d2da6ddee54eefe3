#include "tools/reproduce/baseline_times.h"

#include <numeric>
#include <utility>

#include "base/status.h"
#include "plan/collective/local_trees.h"
#include "plan/collective/locality.h"
#include "plan/collective/planners.h"
#include "plan/collective/ring_order.h"

namespace syncopate::tools::reproduce {
namespace {

constexpr size_t kElementBytes = 4;

struct Baseline {
  std::string name;
  std::string algorithm;
  bool in_paper = true;
  plan::PlannerOptions options;
};

absl::StatusOr<std::vector<Baseline>> Baselines(const Topology& topology,
                                                absl::Span<const int> placement,
                                                const std::vector<int>& active) {
  plan::PlannerOptions machines;
  machines.levels = plan::LevelsOf(topology, placement, active);
  plan::PlannerOptions trees = machines;
  if (!machines.levels.empty()) {
    SYNCOPATE_ASSIGN_OR_RETURN(trees.local_trees,
                               plan::PackLocalTrees(topology, placement, machines.levels[0]));
  }
  plan::PlannerOptions by_place;
  by_place.order = plan::OrderByPlace(topology, placement, active);
  plan::PlannerOptions best_order;
  SYNCOPATE_ASSIGN_OR_RETURN(best_order.order, plan::BestRingOrder(topology, placement, active));
  plan::PlannerOptions active_serve;
  active_serve.servers = active;
  plan::PlannerOptions all_serve;
  all_serve.servers.resize(placement.size());
  std::iota(all_serve.servers.begin(), all_serve.servers.end(), 0);
  return std::vector<Baseline>{{"blink", "blink", true, trees},
                               {"plink", "plink", true, trees},
                               {"ring", "ring", true, by_place},
                               {"double tree", "double-tree", true, {}},
                               {"PS", "parameter-server", true, active_serve},
                               {"hier. ring", "hierarchical-ring", false, machines},
                               {"best ring", "ring", false, best_order},
                               {"PS on all", "parameter-server", false, all_serve}};
}

}  // namespace

absl::StatusOr<std::vector<BaselineTime>> TimesOfBaselines(const Topology& topology,
                                                           absl::Span<const int> placement,
                                                           const std::vector<int>& active,
                                                           uint64_t bytes) {
  plan::CollectiveRequest request;
  request.workers = static_cast<int>(placement.size());
  request.active = active;
  request.elements = bytes / kElementBytes;
  std::vector<BaselineTime> times;
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<Baseline> baselines,
                             Baselines(topology, placement, active));
  for (const Baseline& baseline : baselines) {
    SYNCOPATE_ASSIGN_OR_RETURN(const plan::PlannerInfo* planner,
                               plan::FindPlanner(request.collective, baseline.algorithm));
    SYNCOPATE_ASSIGN_OR_RETURN(const Program program, planner->plan(request, baseline.options));
    const std::vector<std::vector<std::vector<int>>>& levels = baseline.options.levels;
    SYNCOPATE_ASSIGN_OR_RETURN(
        plan::FluidTime time,
        plan::FluidTimeOf(program, topology, placement, kElementBytes,
                          levels.empty() ? std::vector<std::vector<int>>() : levels[0]));
    times.push_back({baseline.name, baseline.in_paper, std::move(time)});
  }
  return times;
}

}  // namespace syncopate::tools::reproduce
