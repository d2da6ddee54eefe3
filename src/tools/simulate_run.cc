#include "tools/simulate_run.h"

#include <unistd.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/limits.h"
#include "base/parse.h"
#include "base/status.h"
#include "base/units.h"
#include "lab/lab.h"
#include "lab/spec.h"
#include "plan/collective/select.h"
#include "sim/group_flows.h"
#include "strategy/registry.h"
#include "sync/decision_log.h"
#include "tools/bench/loaded_topology.h"
#include "tools/simulate_events.h"

namespace syncopate::tools {
namespace {

// Up to this many, all workers together run the plan of a comparison of all algorithms, as a job does
// that has had the time. Above, what they would run at once: comparing takes minutes there.
constexpr int kPlannedWorkersMax = 64;
constexpr size_t kRunsMax = 32;

plan::CollectiveRequest AllReduceOf(int workers, uint64_t elements) {
  plan::CollectiveRequest request;
  request.workers = workers;
  request.elements = elements;
  request.active.resize(static_cast<size_t>(workers));
  std::iota(request.active.begin(), request.active.end(), 0);
  return request;
}

// What an average of all workers runs, and what it costs alone.
struct AllWorkers {
  cost::CommunicationCosts costs;
  std::shared_ptr<const sim::PlannedAverage> planned;  // null: what they would run at once
};

absl::StatusOr<AllWorkers> PriceAll(const std::shared_ptr<const Topology>& topology,
                                    const std::vector<int>& placement) {
  AllWorkers all;
  const int workers = static_cast<int>(placement.size());
  if (workers > 1 && workers <= kPlannedWorkersMax) {
    SYNCOPATE_ASSIGN_OR_RETURN(const plan::Selection small,
                               plan::SelectProgram(AllReduceOf(workers, sim::kPricedElementsSmall),
                                                   4, *topology, placement, {}));
    SYNCOPATE_ASSIGN_OR_RETURN(plan::Selection large,
                               plan::SelectProgram(AllReduceOf(workers, sim::kPricedElementsLarge),
                                                   4, *topology, placement, {}));
    all.costs =
        sim::LineThrough(small.candidates.front().seconds, large.candidates.front().seconds);
    // A program in shared memory has no steps to take flows from.
    if (!large.candidates.front().in_place) {
      all.planned = std::make_shared<const sim::PlannedAverage>(
          sim::PlannedAverage{.program = std::move(large.program), .costs = all.costs});
    }
  } else if (workers > 1) {
    sim::GroupFlows flows(topology, placement, 0);
    std::vector<int> ranks(placement.size());
    std::iota(ranks.begin(), ranks.end(), 0);
    SYNCOPATE_ASSIGN_OR_RETURN(
        const std::shared_ptr<const sim::GroupFlow> flow,
        flows.OfAverage(std::make_shared<const sim::MemberList>(std::move(ranks)),
                        4 * sim::kPricedElementsLarge));
    all.costs.a = flow->a;
    all.costs.b = flow->b;
  }
  all.costs.source = "an all-reduce of all workers on the network";
  return all;
}

// What the lab's shapers let through after a pause. Where traffic in the background crosses a link there is
// none: it takes all that is left.
std::vector<sim::CapacityBucket> BucketsOf(const lab::Spec& spec, const Topology& loaded) {
  const Topology declared = lab::DeclaredTopology(spec);
  const std::vector<lab::DeclaredBurst> bursts = lab::DeclaredBursts(spec);
  std::vector<sim::CapacityBucket> buckets;
  for (size_t i = 0; i < bursts.size(); ++i) {
    if (bursts[i].bytes == 0 || loaded.links[i].bandwidth < declared.links[i].bandwidth) continue;
    // In the declared network a direction of a link has a capacity of its own.
    buckets.push_back({.capacity = declared.links[i].capacities.front(),
                       .burst = bursts[i].bytes,
                       .line_rate = bursts[i].bandwidth});
  }
  return buckets;
}

// How long each worker computes: by its table, and as much longer as its host has less than a core; or by the
// line of a pace that is slower, so that batches that change count; times its slowness.
absl::Status SetPaces(const SimulateArguments& arguments, const std::vector<double>& core_shares,
                      sim::VirtualOptions& options) {
  const double on_a_core = options.table.forward_seconds() + options.table.backward_seconds();
  const double samples = static_cast<double>(arguments.samples);
  options.slowness.clear();
  options.compute.clear();
  for (int rank = 0; rank < options.workers; ++rank) {
    SYNCOPATE_ASSIGN_OR_RETURN(const ComputePace pace,
                               ComputePace::Make(arguments.pace, rank, options.workers));
    options.slowness.push_back(1 + pace.slow());
    // Worker i is on the i-th device.
    const double by_table =
        core_shares.empty() ? on_a_core : on_a_core / core_shares[static_cast<size_t>(rank)];
    const double beta = pace.rate() > 0 ? 1 / pace.rate() : 0;
    if (pace.delay_seconds() + beta * samples > by_table) {
      options.compute.push_back({.alpha = pace.delay_seconds(), .beta = beta});
    } else {
      options.compute.push_back({.alpha = by_table, .beta = 0});
    }
  }
  return absl::OkStatus();
}

// Messages, jitter and what happens to workers.
absl::Status SetCourse(const SimulateArguments& arguments, sim::VirtualOptions& options) {
  const absl::StatusOr<double> jitter = ParseDouble(arguments.jitter, 0, 100);
  if (!jitter.ok()) return At("--jitter", jitter.status());
  options.jitter = *jitter;
  if (!arguments.delay.empty()) {
    const absl::StatusOr<double> delay = ParseSeconds(arguments.delay);
    if (!delay.ok()) return At("--delay", delay.status());
    options.message_delay = *delay;
  }
  const absl::StatusOr<double> detection = ParseSeconds(arguments.detection);
  if (!detection.ok()) return At("--detection", detection.status());
  return AddEvents(arguments.events, *detection, options);
}

// Each worker's part of the file for decisions; none if there is no file.
absl::StatusOr<std::vector<std::unique_ptr<sync::DecisionLog>>> OpenLogs(
    const SimulateArguments& arguments, int workers) {
  std::vector<std::unique_ptr<sync::DecisionLog>> logs;
  if (arguments.log.empty()) return logs;
  auto first = sync::DecisionLog::Open(arguments.log, 0, /*anew=*/true);
  if (!first.ok()) return At("--log", first.status());
  logs.push_back(*std::move(first));
  for (int rank = 1; rank < workers; ++rank) logs.push_back(logs.front()->OfRank(rank));
  return logs;
}

absl::StatusOr<const strategy::StrategyEntry*> EntryOf(const SimulateArguments& arguments) {
  const absl::StatusOr<const strategy::StrategyEntry*> entry =
      strategy::FindStrategy(arguments.strategy);
  if (!entry.ok()) return At("--strategy", entry.status());
  if (!(*entry)->service.empty() && !(*entry)->make_service) {
    return absl::InvalidArgumentError(absl::StrCat("--strategy ", arguments.strategy,
                                                   ": it asks the service ", (*entry)->service,
                                                   ", and does not say how that is made"));
  }
  return entry;
}

}  // namespace

double SimulatedRun::computing_seconds() const {
  return report.table.forward_seconds() + report.table.backward_seconds();
}

std::vector<int> SimulatedRun::ended_early() const {
  std::vector<int> ranks;
  for (size_t rank = 0; rank < result.status.size(); ++rank) {
    if (!result.status[rank].ok()) ranks.push_back(static_cast<int>(rank));
  }
  return ranks;
}

std::vector<int> SimulatedRun::servers() const {
  std::vector<int> ranks;
  for (size_t rank = 0; rank < roles.size(); ++rank) {
    if (roles[rank] == strategy::Role::kServes) ranks.push_back(static_cast<int>(rank));
  }
  return ranks;
}

double SimulatedRun::waiting_share() const {
  double all = std::accumulate(result.ended.begin(), result.ended.end(), 0.0);
  for (const int rank : servers()) all -= result.ended[static_cast<size_t>(rank)];
  const double waiting = std::accumulate(result.waiting.begin(), result.waiting.end(), 0.0);
  return all > 0 ? waiting / all : 0;
}

std::vector<double> SimulatedRun::iteration_seconds() const {
  std::vector<double> seconds;
  for (size_t rank = 0; rank < result.begun.size(); ++rank) {
    const std::vector<double>& begun = result.begun[rank];
    for (size_t i = 0; i < begun.size(); ++i) {
      seconds.push_back((i + 1 < begun.size() ? begun[i + 1] : result.ended[rank]) - begun[i]);
    }
  }
  return seconds;
}

absl::StatusOr<SimulatedNetwork> NetworkOf(const SimulateArguments& arguments) {
  const bool by_costs = !arguments.model.costs.empty();
  if (by_costs + !arguments.topology.empty() + !arguments.lab.empty() > 1) {
    return absl::InvalidArgumentError(
        "--costs, --topology and --lab all say what transfers cost; give one of them");
  }
  if (!arguments.lab.empty()) {
    SYNCOPATE_ASSIGN_OR_RETURN(const lab::Spec spec, lab::ReadLab(arguments.lab));
    // As the jobs of the lab on this machine plan by it: its hosts share the cores.
    const int cores = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
    auto topology = std::make_shared<const Topology>(bench::LoadedTopology(spec, cores));
    return SimulatedNetwork{.topology = topology,
                            .buckets = BucketsOf(spec, *topology),
                            .core_shares = bench::CoreShares(spec)};
  }
  if (arguments.topology.empty()) return SimulatedNetwork{};
  SYNCOPATE_ASSIGN_OR_RETURN(const std::string text,
                             ReadFile(arguments.topology, limits::kTopologyTextBytesMax));
  absl::StatusOr<Topology> topology = ParseTopology(text);
  if (!topology.ok()) return At(arguments.topology, topology.status());
  SimulatedNetwork network;
  network.topology = std::make_shared<const Topology>(*std::move(topology));
  return network;
}

absl::StatusOr<std::vector<int>> WorkersOf(const SimulateArguments& arguments,
                                           const Topology* topology) {
  const int devices = topology == nullptr ? 0 : static_cast<int>(Devices(*topology).size());
  std::vector<int> all;
  if (arguments.workers.empty() && devices > 0) all.push_back(devices);
  for (const absl::string_view text : absl::StrSplit(arguments.workers, ',', absl::SkipEmpty())) {
    const absl::StatusOr<int64_t> count = ParseInt(text, 1, kSimulatedWorkersMax);
    if (!count.ok()) return At("--workers", count.status());
    if (devices > 0 && *count > devices) {
      return absl::InvalidArgumentError(absl::StrCat("--workers ", *count, ": the network has ",
                                                     devices, " devices to put workers on"));
    }
    all.push_back(static_cast<int>(*count));
  }
  if (all.empty()) {
    return absl::InvalidArgumentError(
        "say how many workers (-n N), or give a --topology or a --lab");
  }
  if (all.size() > kRunsMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("--workers: at most ", kRunsMax, " runs at once"));
  }
  if (all.size() > 1 && !(arguments.log.empty() && arguments.svg.empty())) {
    return absl::InvalidArgumentError("--log and --svg are of one run; give one number of workers");
  }
  return all;
}

// Makes every worker's strategy from the registry, and its part of the log.
absl::StatusOr<SimulatedRun> Simulate(const SimulateArguments& arguments,
                                      const SimulatedNetwork& network, int workers) {
  SYNCOPATE_ASSIGN_OR_RETURN(const strategy::StrategyEntry* const entry, EntryOf(arguments));
  SimulatedRun run{.workers = workers, .report = {}, .topology = network.topology, .result = {}};
  sim::VirtualOptions options;
  std::optional<cost::CommunicationCosts> costs;
  if (run.topology != nullptr) {
    options.topology = run.topology;
    SYNCOPATE_ASSIGN_OR_RETURN(options.placement, PlaceInOrder(*run.topology, workers));
    SYNCOPATE_ASSIGN_OR_RETURN(const AllWorkers all, PriceAll(run.topology, options.placement));
    options.planned = all.planned;
    options.buckets = network.buckets;
    costs = all.costs;
  }
  // A layer's next forward waits for its own tensors only, so schedules are planned for that.
  ScheduleArguments model = arguments.model;
  model.overlap_forward = true;
  SYNCOPATE_ASSIGN_OR_RETURN(run.report, MakeScheduleReport(model, costs));
  options.workers = workers;
  options.iterations = arguments.iterations;
  options.seed = static_cast<uint64_t>(arguments.seed);
  options.table = run.report.table;
  options.costs = run.report.costs;
  SYNCOPATE_RETURN_IF_ERROR(SetPaces(arguments, network.core_shares, options));
  SYNCOPATE_RETURN_IF_ERROR(SetCourse(arguments, options));
  if (entry->lockstep && !options.joins.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--event: with --strategy ", arguments.strategy,
                     " all workers are in the same iteration, so nobody can join"));
  }
  options.samples.assign(static_cast<size_t>(workers), static_cast<uint64_t>(arguments.samples));
  options.keep_log = false;
  options.keep_waits = !arguments.svg.empty();
  strategy::StrategyOptions values;
  values.size = workers;
  values.table = run.report.table;
  values.roles = entry->RolesAmong(workers);
  options.servers = entry->servers();
  values.topology = run.topology;
  values.seed = options.seed;
  values.schedule = std::make_shared<const Schedule>(run.report.schedules.front().schedule);
  SYNCOPATE_ASSIGN_OR_RETURN(options.roles, entry->RolesOfLoops(workers));
  run.roles = options.roles;
  if (entry->make_service) {
    options.make_service = [entry, values](int rank) {
      strategy::StrategyOptions its = values;
      its.rank = rank;
      return entry->make_service(its);
    };
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const auto logs, OpenLogs(arguments, workers));
  for (const auto& log : logs) options.witnesses.push_back(log.get());
  std::vector<std::unique_ptr<strategy::Strategy>> machines;
  for (int rank = 0; rank < workers; ++rank) {
    values.rank = rank;
    machines.emplace_back();
    if (!options.Trains(rank)) continue;
    SYNCOPATE_ASSIGN_OR_RETURN(machines.back(), strategy::MakeStrategy(arguments.strategy, values));
    if (!logs.empty()) {
      logs[static_cast<size_t>(rank)]->Began({.name = arguments.strategy, .values = values});
    }
  }
  SYNCOPATE_ASSIGN_OR_RETURN(run.result,
                             sim::RunVirtually(options, [&](const strategy::WorkerInfo& info) {
                               return std::move(machines[static_cast<size_t>(info.rank)]);
                             }));
  // Where something happens to workers, how they end is what was asked for.
  if (arguments.events.empty()) {
    for (const absl::Status& status : run.result.status) SYNCOPATE_RETURN_IF_ERROR(status);
  }
  for (const auto& log : logs) SYNCOPATE_RETURN_IF_ERROR(At("--log", log->status()));
  return run;
}

}  // namespace syncopate::tools
