#include "train/sync/kept_schedule.h"

#include <optional>
#include <utility>

#include "ATen/Parallel.h"
#include "base/status.h"
#include "driver/cost_probe.h"

namespace syncopate::train {
namespace {

bool NeedsCosts(const std::string& planner) {
  return planner != "none" && planner != "wfbp" && planner != "bucket";
}

}  // namespace

absl::StatusOr<std::unique_ptr<driver::ScheduleKeeper>> MakeKeeper(Worker& worker,
                                                                   const TensorTable& table,
                                                                   const std::string& planner,
                                                                   bool overlap_forward) {
  const auto measure =
      [&worker](driver::CostProbeOptions options) -> absl::StatusOr<CommunicationCosts> {
    options.computing_threads = at::get_num_threads();
    SYNCOPATE_ASSIGN_OR_RETURN(const driver::CostMeasurement measured,
                               driver::MeasureCosts(worker, options));
    return measured.fit.costs;
  };
  CommunicationCosts costs;
  if (NeedsCosts(planner) && worker.size() > 1) {
    SYNCOPATE_ASSIGN_OR_RETURN(costs, measure({}));
  }
  driver::KeeperPolicy policy;
  policy.planning.overlap_forward = overlap_forward;
  policy.measure = [measure] { return measure({.budget_seconds = 1}); };
  return driver::ScheduleKeeper::Make(worker, table, planner, std::move(costs), policy);
}

absl::StatusOr<bool> KeepSchedule(driver::ScheduleKeeper& keeper, driver::LiveDriver& driver) {
  const int64_t iteration = driver.iterations() - 1;
  if (keeper.LooksAfter(iteration)) SYNCOPATE_RETURN_IF_ERROR(driver.Finish());
  SYNCOPATE_ASSIGN_OR_RETURN(
      std::optional<Schedule> next,
      keeper.AfterIteration(iteration, driver.times(), driver.TakeTransfers()));
  if (!next) return false;
  SYNCOPATE_RETURN_IF_ERROR(driver.SetSchedule(std::make_shared<Schedule>(*std::move(next))));
  return true;
}

}  // namespace syncopate::train
