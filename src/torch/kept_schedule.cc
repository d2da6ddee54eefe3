#include "torch/kept_schedule.h"

#include <algorithm>
#include <utility>

#include "ATen/Parallel.h"
#include "base/environment.h"
#include "base/status.h"
#include "base/switch.h"
#include "sync/cost_probe.h"
#include "sync/exchange.h"

namespace syncopate::torch {
absl::StatusOr<std::unique_ptr<adapt::ScheduleKeeper>> MakeKeeper(Worker& worker,
                                                                  const TensorTable& table,
                                                                  const std::string& planner,
                                                                  const KeeperOptions& options) {
  adapt::KeeperPolicy policy;
  SYNCOPATE_ASSIGN_OR_RETURN(policy.upkeep,
                             IsOn(ProcessEnvironment(), "SYNCOPATE_UPKEEP", /*otherwise=*/true));
  if (options.recorder != nullptr) {
    policy.outside_ns = [recorder = options.recorder] {
      return recorder->TotalNs(SpanKind::kEvaluate) + recorder->TotalNs(SpanKind::kCheckpoint);
    };
  }
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

absl::StatusOr<adapt::ScheduleKeeper::News> KeepSchedule(adapt::ScheduleKeeper& keeper,
                                                         sync::Synchronizer& synchronizer) {
  const int64_t iteration = synchronizer.iterations() - 1;
  if (keeper.LooksAfter(iteration)) {
    SYNCOPATE_RETURN_IF_ERROR(synchronizer.Finish());
    if (keeper.PlansAgain()) synchronizer.AgreeOnSchedules();
  }
  SYNCOPATE_ASSIGN_OR_RETURN(
      adapt::ScheduleKeeper::News news,
      keeper.AfterIteration(iteration, synchronizer.times(), synchronizer.TakeTransfers(),
                            synchronizer.schedule()));
  if (news.next) {
    SYNCOPATE_RETURN_IF_ERROR(synchronizer.Propose(std::make_shared<const Schedule>(*news.next)));
  }
  return news;
}

}  // namespace syncopate::torch
