#include "tools/simulate_command.h"

#include <algorithm>
#include <iostream>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/limits.h"
#include "base/parse.h"
#include "base/status.h"
#include "model/topology.h"
#include "plan/collective/select.h"
#include "schedule/models/model_tables.h"
#include "sim/group_prices.h"
#include "sim/virtual_cluster.h"
#include "strategy/registry.h"
#include "sync/decision_log.h"
#include "tools/bench/statistics.h"
#include "tools/command_line.h"

namespace syncopate::tools {
namespace {

constexpr char kCommand[] = "simulate";
constexpr int kWorkersSimulatedMax = limits::kWorkersMax;
struct Simulation {
  const strategy::StrategyEntry* entry = nullptr;
  ScheduleReport report;
  std::shared_ptr<const Topology> topology;  // null: none was given
  std::shared_ptr<sim::GroupPrices> prices;  // of groups on it
  int workers = 0;
};

// What the quickest all-reduce of all workers takes, by the cost model.
absl::StatusOr<double> AllReduceSeconds(const Topology& topology, const std::vector<int>& placement,
                                        uint64_t elements) {
  plan::CollectiveRequest request;
  request.workers = static_cast<int>(placement.size());
  request.elements = elements;
  request.active.resize(placement.size());
  std::iota(request.active.begin(), request.active.end(), 0);
  SYNCOPATE_ASSIGN_OR_RETURN(const plan::Selection selection,
                             plan::SelectProgram(request, 4, topology, placement, {}));
  return selection.candidates.front().seconds;
}

// All workers run their plan, which they have time to make. Beside others each gets its part of the
// network.
absl::StatusOr<cost::CommunicationCosts> CostsOn(const Topology& topology,
                                                 const std::vector<int>& placement,
                                                 const std::string& source) {
  cost::CommunicationCosts costs;
  if (placement.size() > 1) {
    SYNCOPATE_ASSIGN_OR_RETURN(const double small,
                               AllReduceSeconds(topology, placement, sim::kPricedElementsSmall));
    SYNCOPATE_ASSIGN_OR_RETURN(const double large,
                               AllReduceSeconds(topology, placement, sim::kPricedElementsLarge));
    costs = sim::LineThrough(small, large);
  }
  costs.source = absl::StrCat("the quickest all-reduce on ", source);
  return costs;
}

absl::StatusOr<cost::CommunicationCosts> PriceOn(const SimulateArguments& arguments,
                                                 Simulation& simulation) {
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<int> placement,
                             PlaceInOrder(*simulation.topology, simulation.workers));
  simulation.prices = std::make_shared<sim::GroupPrices>(simulation.topology, placement);
  return CostsOn(*simulation.topology, placement, arguments.topology);
}

absl::StatusOr<Simulation> Prepare(const SimulateArguments& arguments) {
  Simulation simulation;
  const absl::StatusOr<const strategy::StrategyEntry*> entry =
      strategy::FindStrategy(arguments.strategy);
  if (!entry.ok()) return At("--strategy", entry.status());
  simulation.entry = *entry;
  if (!simulation.entry->service.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--strategy ", arguments.strategy, ": it asks the service ",
                     simulation.entry->service, ", which is not simulated yet"));
  }
  simulation.workers = arguments.workers;
  std::optional<cost::CommunicationCosts> costs;
  if (!arguments.topology.empty()) {
    if (!arguments.model.costs.empty()) {
      return absl::InvalidArgumentError(
          "--costs and --topology both say what transfers cost; give one of them");
    }
    SYNCOPATE_ASSIGN_OR_RETURN(const std::string text,
                               ReadFile(arguments.topology, limits::kTopologyTextBytesMax));
    absl::StatusOr<Topology> topology = ParseTopology(text);
    if (!topology.ok()) return At(arguments.topology, topology.status());
    simulation.topology = std::make_shared<const Topology>(*std::move(topology));
    if (simulation.workers == 0) {
      simulation.workers = static_cast<int>(Devices(*simulation.topology).size());
    }
    absl::StatusOr<cost::CommunicationCosts> priced = PriceOn(arguments, simulation);
    if (!priced.ok()) return At(arguments.topology, priced.status());
    costs = *std::move(priced);
  }
  if (simulation.workers < 1) {
    return absl::InvalidArgumentError("say how many workers (-n N), or give a --topology");
  }
  SYNCOPATE_ASSIGN_OR_RETURN(simulation.report, MakeScheduleReport(arguments.model, costs));
  return simulation;
}

absl::StatusOr<double> JitterOf(const SimulateArguments& arguments) {
  const absl::StatusOr<double> jitter = ParseDouble(arguments.jitter, 0, 100);
  if (!jitter.ok()) return At("--jitter", jitter.status());
  return jitter;
}

// Makes every worker's strategy from the registry, and its part of the log.
absl::StatusOr<sim::VirtualResult> Simulate(const SimulateArguments& arguments,
                                            const Simulation& simulation) {
  sim::VirtualOptions options;
  options.workers = simulation.workers;
  options.iterations = arguments.iterations;
  options.seed = static_cast<uint64_t>(arguments.seed);
  options.table = simulation.report.table;
  options.costs = simulation.report.costs;
  if (simulation.prices != nullptr) {
    options.group_costs = [&](const std::vector<int>& members) {
      const bool all = static_cast<int>(members.size()) == simulation.workers;
      return all ? absl::StatusOr<cost::CommunicationCosts>(options.costs)
                 : simulation.prices->Of(members);
    };
  }
  SYNCOPATE_ASSIGN_OR_RETURN(options.jitter, JitterOf(arguments));
  options.samples.assign(static_cast<size_t>(simulation.workers),
                         static_cast<uint64_t>(arguments.samples));
  options.keep_log = false;
  strategy::StrategyOptions values;
  values.size = simulation.workers;
  values.table = simulation.report.table;
  values.topology = simulation.topology;
  values.seed = options.seed;
  values.schedule = std::make_shared<const Schedule>(simulation.report.schedules.front().schedule);
  std::vector<std::unique_ptr<sync::DecisionLog>> logs;
  for (int rank = 0; !arguments.log.empty() && rank < simulation.workers; ++rank) {
    if (rank == 0) {
      auto log = sync::DecisionLog::Open(arguments.log, rank, /*anew=*/true);
      if (!log.ok()) return At("--log", log.status());
      logs.push_back(*std::move(log));
    } else {
      logs.push_back(logs.front()->OfRank(rank));
    }
    options.witnesses.push_back(logs.back().get());
  }
  std::vector<std::unique_ptr<strategy::Strategy>> machines;
  for (int rank = 0; rank < simulation.workers; ++rank) {
    values.rank = rank;
    SYNCOPATE_ASSIGN_OR_RETURN(machines.emplace_back(),
                               strategy::MakeStrategy(arguments.strategy, values));
    if (!logs.empty())
      logs[static_cast<size_t>(rank)]->Began({.name = arguments.strategy, .values = values});
  }
  SYNCOPATE_ASSIGN_OR_RETURN(sim::VirtualResult result,
                             sim::RunVirtually(options, [&](const strategy::WorkerInfo& info) {
                               return std::move(machines[static_cast<size_t>(info.rank)]);
                             }));
  for (const absl::Status& status : result.status) SYNCOPATE_RETURN_IF_ERROR(status);
  for (const auto& log : logs) SYNCOPATE_RETURN_IF_ERROR(At("--log", log->status()));
  return result;
}

// The times between the begins of iterations, of all workers; the last one's to the end of all.
std::vector<double> IterationSeconds(const sim::VirtualResult& result) {
  std::vector<double> seconds;
  for (const std::vector<double>& begun : result.begun) {
    for (size_t i = 0; i < begun.size(); ++i) {
      seconds.push_back((i + 1 < begun.size() ? begun[i + 1] : result.seconds) - begun[i]);
    }
  }
  return seconds;
}

std::string Report(const SimulateArguments& arguments, const Simulation& simulation,
                   const sim::VirtualResult& result) {
  const std::vector<double> seconds = IterationSeconds(result);
  const ScheduleReport& report = simulation.report;
  const double samples = static_cast<double>(arguments.samples) * simulation.workers *
                         arguments.iterations / result.seconds;
  const double p50 = bench::Quantile(seconds, 0.5), p99 = bench::Quantile(seconds, 0.99);
  const double compute = report.table.forward_seconds() + report.table.backward_seconds();
  if (arguments.json) {
    return absl::StrFormat(
        "{\"strategy\":\"%s\",\"model\":\"%s\",\"workers\":%d,\"iterations\":%d,"
        "\"costs\":%s,\"seconds\":%.9g,\"iteration_seconds\":{\"p50\":%.9g,\"p99\":%.9g},"
        "\"compute_seconds\":%.9g,\"samples_per_second\":%.9g}\n",
        arguments.strategy, report.table.model, simulation.workers, arguments.iterations,
        cost::ToJson(report.costs), result.seconds, p50, p99, compute, samples);
  }
  std::string text =
      absl::StrFormat("%s of %s on %d workers, %d iterations in virtual time\n", arguments.strategy,
                      report.table.model, simulation.workers, arguments.iterations);
  absl::StrAppendFormat(&text, "  an iteration   %.3f ms (p50), %.3f ms (p99)\n", p50 * 1e3,
                        p99 * 1e3);
  absl::StrAppendFormat(&text, "  computing      %.3f ms of it\n", compute * 1e3);
  absl::StrAppendFormat(&text, "  all            %.3f s, %.0f samples/s\n", result.seconds,
                        samples);
  if (!arguments.log.empty()) absl::StrAppend(&text, "wrote ", arguments.log, "\n");
  return text;
}

constexpr char kFooter[] =
    "Nothing is computed and nothing moves: layers take the times of the model's table, transfers\n"
    "what the costs say, and the strategies are those of `syncopate train`.\n"
    "\n"
    "Examples:\n"
    "  syncopate simulate --model resnet-152 -n 64 --costs 1.4ms,1.7ns\n"
    "  syncopate simulate --model bert-base --topology net.json --jitter 0.1 --json\n"
    "  syncopate simulate --model resnet-50 -n 4 --iterations 3 --log decisions.jsonl";

}  // namespace

int RunSimulate(const SimulateArguments& arguments, std::ostream& out) {
  const absl::StatusOr<Simulation> simulation = Prepare(arguments);
  if (!simulation.ok()) return Complain(kCommand, simulation.status());
  const absl::StatusOr<sim::VirtualResult> result = Simulate(arguments, *simulation);
  if (!result.ok()) return Complain(kCommand, result.status());
  out << Report(arguments, *simulation, *result) << std::flush;
  return kDone;
}

void AddSimulateCommand(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<SimulateArguments>();
  arguments->model.schedule = "search";
  CLI::App* command =
      app.add_subcommand(kCommand, "Run a strategy in virtual time, on any number of workers");
  const std::string models = absl::StrJoin(schedule::KnownModels(), ", ",
                                           [](std::string* out, const schedule::KnownModel& model) {
                                             absl::StrAppend(out, model.name);
                                           });
  command
      ->add_option("--strategy", arguments->strategy,
                   absl::StrCat("who synchronizes what and when: ", strategy::StrategyList()))
      ->capture_default_str();
  command->add_option("--model", arguments->model.model, absl::StrCat("the model: ", models));
  command->add_option("--table", arguments->model.table,
                      "file with the tensors of a model (docs/asc-wfbp.md)");
  command
      ->add_option("-n,--workers", arguments->workers,
                   "how many workers (as many as the topology has)")
      ->check(WholeNumber(1, kWorkersSimulatedMax));
  command->add_option("--topology", arguments->topology,
                      "file of a network; a transfer of all workers costs what their quickest "
                      "all-reduce takes on it, one of a group what its members' does");
  command->add_option("--costs", arguments->model.costs,
                      "what a transfer costs: a file, or start-up, a byte and the contention of 2, "
                      "3, ... at once, as 1.4ms,1.7ns,1.5 (the published ones)");
  command
      ->add_option("--schedule", arguments->model.schedule,
                   "which gradients travel together, for strategies that average gradients")
      ->capture_default_str();
  command->add_option("--scale-bytes", arguments->model.scale_bytes,
                      "multiply the bytes of every tensor by this factor (1)");
  command->add_option("--scale-times", arguments->model.scale_times,
                      "multiply the computing time of every tensor by this factor (1)");
  command->add_option("--iterations", arguments->iterations, "how many")
      ->check(WholeNumber(1, 100'000))
      ->capture_default_str();
  command->add_option("--samples", arguments->samples, "of each worker's batch")
      ->check(WholeNumber(1, 1 << 20))
      ->capture_default_str();
  command
      ->add_option("--jitter", arguments->jitter,
                   "computing takes up to this part longer, anew for every layer")
      ->capture_default_str();
  command->add_option("--seed", arguments->seed, "of the jitter and of the order of events")
      ->check(WholeNumberFrom(0))
      ->capture_default_str();
  command->add_option("--log", arguments->log,
                      "file for every decision, transfer and update, a JSON object a line "
                      "(docs/observe.md)");
  command->add_flag("--json", arguments->json, "print one JSON object");
  command->footer(kFooter);
  command->callback([arguments, &exit_code] { exit_code = RunSimulate(*arguments, std::cout); });
}

}  // namespace syncopate::tools
