#include "torch/kept_schedule.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "ATen/Parallel.h"
#include "base/status.h"
#include "sync/cost_probe.h"
#include "sync/exchange.h"

namespace syncopate::torch {
absl::StatusOr<std::unique_ptr<adapt::ScheduleKeeper>> MakeKeeper(Worker& worker,
                                                                  const TensorTable& table,
                                                                  const std::string& planner,
                                                                  const KeeperOptions& options) {
  adapt::KeeperPolicy policy;
  policy.planning.overlap_forward = options.overlap_forward;
  policy.measure_first = options.measure_first;
  policy.measure = [&worker, options](
                       double budget_seconds,
                       int64_t iteration) -> absl::StatusOr<cost::CommunicationCosts> {
    const int64_t number = options.first_iteration + std::max<int64_t>(0, iteration);
    const observe::ScopedSpan span(options.recorder, SpanKind::kMeasure, static_cast<int>(number));
    sync::CostProbeOptions probe;
    probe.budget_seconds = budget_seconds;
    probe.computing_threads = at::get_num_threads();
    SYNCOPATE_ASSIGN_OR_RETURN(const sync::CostMeasurement measured,
                               sync::MeasureCosts(worker, probe));
    return measured.fit.costs;
  };
  return adapt::ScheduleKeeper::Make(sync::ExchangeOf(worker), table, planner,
                                     /*costs=*/std::nullopt, policy);
}

absl::StatusOr<std::optional<Schedule>> KeepSchedule(adapt::ScheduleKeeper& keeper,
                                                     sync::Synchronizer& synchronizer) {
  const int64_t iteration = synchronizer.iterations() - 1;
  if (keeper.LooksAfter(iteration)) {
    SYNCOPATE_RETURN_IF_ERROR(synchronizer.Finish());
    if (keeper.PlansAgain()) synchronizer.AgreeOnSchedules();
  }
  SYNCOPATE_ASSIGN_OR_RETURN(
      std::optional<Schedule> next,
      keeper.AfterIteration(iteration, synchronizer.times(), synchronizer.TakeTransfers(),
                            synchronizer.schedule()));
  if (next) {
    SYNCOPATE_RETURN_IF_ERROR(synchronizer.Propose(std::make_shared<const Schedule>(*next)));
  }
  return next;
}

}  // namespace syncopate::torch
