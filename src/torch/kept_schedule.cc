#include "torch/kept_schedule.h"

#include <optional>
#include <utility>

#include "ATen/Parallel.h"
#include "base/status.h"
#include "sync/cost_probe.h"

namespace syncopate::torch {
namespace {

bool NeedsCosts(const std::string& planner) {
  return planner != "none" && planner != "wfbp" && planner != "bucket";
}

}  // namespace

absl::StatusOr<std::unique_ptr<sync::ScheduleKeeper>> MakeKeeper(Worker& worker,
                                                                 const TensorTable& table,
                                                                 const std::string& planner,
                                                                 bool overlap_forward) {
  const auto measure =
      [&worker](sync::CostProbeOptions options) -> absl::StatusOr<cost::CommunicationCosts> {
    options.computing_threads = at::get_num_threads();
    SYNCOPATE_ASSIGN_OR_RETURN(const sync::CostMeasurement measured,
                               sync::MeasureCosts(worker, options));
    return measured.fit.costs;
  };
  cost::CommunicationCosts costs;
  if (NeedsCosts(planner) && worker.size() > 1) {
    SYNCOPATE_ASSIGN_OR_RETURN(costs, measure({}));
  }
  sync::KeeperPolicy policy;
  policy.planning.overlap_forward = overlap_forward;
  policy.measure = [measure] { return measure({.budget_seconds = 1}); };
  return sync::ScheduleKeeper::Make(worker, table, planner, std::move(costs), policy);
}

absl::StatusOr<bool> KeepSchedule(sync::ScheduleKeeper& keeper, sync::Synchronizer& synchronizer) {
  const int64_t iteration = synchronizer.iterations() - 1;
  if (keeper.LooksAfter(iteration)) SYNCOPATE_RETURN_IF_ERROR(synchronizer.Finish());
  SYNCOPATE_ASSIGN_OR_RETURN(
      std::optional<Schedule> next,
      keeper.AfterIteration(iteration, synchronizer.times(), synchronizer.TakeTransfers()));
  if (!next) return false;
  SYNCOPATE_RETURN_IF_ERROR(synchronizer.SetSchedule(std::make_shared<Schedule>(*std::move(next))));
  return true;
}

}  // namespace syncopate::torch
