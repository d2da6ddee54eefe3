#include "train/sync/kept_schedule.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "ATen/Parallel.h"
#include "base/status.h"
#include "driver/cost_probe.h"

namespace syncopate::train {
absl::StatusOr<std::unique_ptr<driver::ScheduleKeeper>> MakeKeeper(Worker& worker,
                                                                   const TensorTable& table,
                                                                   const std::string& planner,
                                                                   const KeeperOptions& options) {
  driver::KeeperPolicy policy;
  policy.planning.overlap_forward = options.overlap_forward;
  policy.measure_first = options.measure_first;
  policy.measure = [&worker, options](double budget_seconds,
                                      int64_t iteration) -> absl::StatusOr<CommunicationCosts> {
    const int64_t number = options.first_iteration + std::max<int64_t>(0, iteration);
    const observe::ScopedSpan span(options.recorder, SpanKind::kMeasure, static_cast<int>(number));
    driver::CostProbeOptions probe;
    probe.budget_seconds = budget_seconds;
    probe.computing_threads = at::get_num_threads();
    SYNCOPATE_ASSIGN_OR_RETURN(const driver::CostMeasurement measured,
                               driver::MeasureCosts(worker, probe));
    return measured.fit.costs;
  };
  return driver::ScheduleKeeper::Make(worker, table, planner, /*costs=*/std::nullopt, policy);
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
