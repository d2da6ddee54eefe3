#include "tools/simulate_command.h"

#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/parse.h"
#include "base/status.h"
#include "schedule/models/model_tables.h"
#include "strategy/registry.h"
#include "tools/command_line.h"
#include "tools/simulate_report.h"
#include "tools/train_replay.h"

namespace syncopate::tools {
namespace {

constexpr char kSimulateCommand[] = "simulate";

absl::StatusOr<std::vector<SimulatedRun>> RunAll(const SimulateArguments& arguments) {
  SYNCOPATE_ASSIGN_OR_RETURN(const SimulatedNetwork network, NetworkOf(arguments));
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<int> counts,
                             WorkersOf(arguments, network.topology.get()));
  std::vector<SimulatedRun> runs;
  for (const int workers : counts) {
    SYNCOPATE_ASSIGN_OR_RETURN(runs.emplace_back(), Simulate(arguments, network, workers));
  }
  return runs;
}

constexpr char kSimulateFooter[] =
    "Nothing is computed and nothing moves: layers take the times of the model's table, transfers\n"
    "what the network or the costs say, and the strategies are those of `syncopate train`\n"
    "(docs/simulate.md).\n"
    "\n"
    "Examples:\n"
    "  syncopate simulate --model resnet-152 --workers 16,64,256 --costs 1.4ms,1.7ns\n"
    "  syncopate simulate --model bert-base --topology net.json --jitter 0.1 --json\n"
    "  syncopate simulate --model resnet-50 --lab labs/two-racks.toml --slow 3:1 --svg run.svg\n"
    "  syncopate simulate --model resnet-50 -n 8 --event 1s:slow:2:3x --event 2s:slow:2:1x\n"
    "  syncopate simulate --model resnet-50 -n 8 --event 500ms:kill:3 --detection 2s\n"
    "  syncopate simulate --model resnet-50 -n 4 --iterations 3 --log decisions.jsonl";

}  // namespace

int RunSimulate(const SimulateArguments& arguments, std::ostream& out) {
  const absl::StatusOr<std::vector<SimulatedRun>> runs = RunAll(arguments);
  if (!runs.ok()) return Complain(kSimulateCommand, runs.status());
  if (!arguments.svg.empty()) {
    const absl::Status status = WriteFile(arguments.svg, RunToSvg(arguments, runs->front()));
    if (!status.ok()) return Complain(kSimulateCommand, At("--svg", status));
  }
  if (arguments.json) {
    out << RunsToJson(arguments, *runs) << std::flush;
    return kDone;
  }
  out << FormatRuns(arguments, *runs);
  for (const std::string& file : {arguments.log, arguments.svg}) {
    if (!file.empty()) out << "wrote " << file << "\n";
  }
  out << std::flush;
  return kDone;
}

void AddSimulateCommand(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<SimulateArguments>();
  arguments->model.schedule = "search";
  CLI::App* command = app.add_subcommand(
      kSimulateCommand, "Run a strategy in virtual time, on any number of workers");
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
  command->add_option("-n,--workers", arguments->workers,
                      "how many workers; several as 16,64,256 for a table (as many as the network "
                      "has devices)");
  command->add_option("--topology", arguments->topology,
                      "file of a network, as `probe` writes it: transfers share its links");
  command->add_option("--lab", arguments->lab,
                      "file of a lab instead: transfers share the links that it declares");
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
  AddPaceOptions(*command, arguments->pace);
  command
      ->add_option("--jitter", arguments->jitter,
                   "computing takes up to this part longer, anew for every layer")
      ->capture_default_str();
  // RANKS have commas of their own.
  command
      ->add_option(
          "--event", arguments->events,
          "what happens to workers: TIME:kill:RANKS, TIME:leave:RANKS, TIME:join:RANKS, or "
          "TIME:slow:RANKS:Kx for computing that takes K times as long from then on; may be "
          "repeated")
      ->type_name("TIME:WHAT:RANKS")
      ->allow_extra_args(false);
  command
      ->add_option("--detection", arguments->detection,
                   "until the others know that a worker died; a service that it hosted is silent "
                   "as long")
      ->capture_default_str();
  command->add_option("--delay", arguments->delay,
                      "of a message to another worker, as 100us; a request to a service is up to "
                      "four of them (the start-up of a transfer; those of services take no time)");
  command->add_option("--seed", arguments->seed, "of the jitter and of the order of events")
      ->check(WholeNumberFrom(0))
      ->capture_default_str();
  command->add_option("--log", arguments->log,
                      "file for every decision, transfer and update, a JSON object a line "
                      "(docs/observe.md)");
  command->add_option("--svg", arguments->svg,
                      "file for a timeline: when each worker computed and when it waited");
  command->add_flag("--json", arguments->json,
                    "print one JSON object; an array of them for several runs");
  command->footer(kSimulateFooter);
  command->callback([arguments, &exit_code] { exit_code = RunSimulate(*arguments, std::cout); });
}

}  // namespace syncopate::tools
