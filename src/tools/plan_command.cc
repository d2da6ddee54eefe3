#include "tools/plan_command.h"

#include <algorithm>
#include <functional>
#include <iostream>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/clock.h"
#include "base/environment.h"
#include "base/limits.h"
#include "base/parse.h"
#include "base/status.h"
#include "base/units.h"
#include "model/program_msccl.h"
#include "model/program_validator.h"
#include "model/topology_makers.h"
#include "plan/collective/select.h"
#include "plan/forest/forest_planner.h"
#include "syncopate/data_type.h"
#include "tools/command_line.h"
#include "tools/doctor/machine_findings.h"
#include "tools/doctor/measured_host.h"
#include "tools/interrupt.h"
#include "tools/plan_report.h"
#include "tools/plan_schedule.h"
#include "tools/schedule_picture.h"

namespace syncopate::tools {
namespace {

constexpr uint64_t kBytesMax = uint64_t{1} << 40;

// Why MSCCL cannot have a program, and what to do.
absl::Status WithAdvice(const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat("--export: ", status.message(),
                                                  "; --export text can express every program"));
}

// The costs by which a job chooses: the same on all workers, whatever was measured.
HostCosts CostsOfJobs(const PlanArguments& arguments) {
  HostCosts costs;
  costs.cores = std::max(1, arguments.cores);
  return costs;
}

// What predictions for this machine are made of.
AssumedHost AssumeHost(const PlanArguments& arguments) {
  AssumedHost host;
  host.costs = CostsOfJobs(arguments);
  if (!arguments.measured) return host;
  if (arguments.measured->costs.cores != host.costs.cores) {
    host.note = absl::StrCat("which was done for ", arguments.measured->costs.cores, " cores only");
    return host;
  }
  host.costs = arguments.measured->costs;
  host.measured = arguments.measured->date;
  if (arguments.measured->busy) host.note = "while other programs kept the cores busy";
  return host;
}

absl::StatusOr<Topology> LoadTopology(const PlanArguments& arguments,
                                      std::optional<AssumedHost>& host) {
  if (arguments.topology.empty()) {
    if (arguments.workers < 1) {
      return absl::InvalidArgumentError("say how many workers (-n N), or give a --topology");
    }
    host = AssumeHost(arguments);
    Topology topology = SingleHostTopology(arguments.workers, host->costs);
    if (!host->measured.empty()) topology.source = "measured: one host";
    return topology;
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const std::string text,
                             ReadFile(arguments.topology, limits::kTopologyTextBytesMax));
  absl::StatusOr<Topology> topology = ParseTopology(text);
  if (!topology.ok()) return At(arguments.topology, topology.status());
  return topology;
}

// Cuts the data into blocks that differ by one element at most.
absl::Status CutBlocksEvenly(plan::CollectiveRequest& request) {
  const uint64_t count = request.active.size();
  if (request.collective == Collective::kAllToAll && request.elements % count != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--bytes: ", request.elements, " elements cannot be cut into ", count,
        " equal blocks, which all-to-all needs; choose a multiple of ", count, " elements"));
  }
  for (uint64_t i = 0; i < count; ++i) {
    request.block_elements.push_back(request.elements / count +
                                     (i < request.elements % count ? 1 : 0));
  }
  return absl::OkStatus();
}

absl::StatusOr<int> CheckRank(absl::string_view flag, int rank, const std::vector<int>& active) {
  if (std::binary_search(active.begin(), active.end(), rank)) return rank;
  return absl::InvalidArgumentError(absl::StrCat(
      flag, ": worker ", rank, " is not one of the active ones, ", FormatRanks(active)));
}

absl::StatusOr<plan::CollectiveRequest> MakeRequest(const PlanArguments& arguments, int workers,
                                                    DataType type) {
  plan::CollectiveRequest request;
  SYNCOPATE_ASSIGN_OR_RETURN(request.collective, ParseCollective(arguments.collective));
  request.workers = workers;
  if (!arguments.active) {
    request.active.resize(static_cast<size_t>(workers));
    std::iota(request.active.begin(), request.active.end(), 0);
  } else if (arguments.active->empty()) {
    return absl::InvalidArgumentError(
        "--active: no worker is active; name those that are, as 0-3,6");
  } else {
    absl::StatusOr<std::vector<int>> active = ParseRanks(*arguments.active, workers);
    if (!active.ok()) return At("--active", active.status());
    request.active = *std::move(active);
  }
  const absl::StatusOr<uint64_t> bytes = ParseBytes(arguments.bytes, kBytesMax);
  if (!bytes.ok()) return At("--bytes", bytes.status());
  if (*bytes % SizeOf(type) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("--bytes: ", *bytes,
                                                   " is not a multiple of the ", SizeOf(type),
                                                   " bytes of a ", Name(type)));
  }
  if (request.collective != Collective::kBarrier) request.elements = *bytes / SizeOf(type);
  if (HasBlocks(request.collective)) SYNCOPATE_RETURN_IF_ERROR(CutBlocksEvenly(request));
  if (HasRoot(request.collective) || request.collective == Collective::kSendReceive) {
    const int root = arguments.root < 0 ? request.active.front() : arguments.root;
    SYNCOPATE_ASSIGN_OR_RETURN(request.root, CheckRank("--root", root, request.active));
  } else if (arguments.root >= 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--root: ", Name(request.collective), " has no root"));
  }
  if (request.collective == Collective::kSendReceive) {
    const int target = arguments.target < 0 ? request.active.back() : arguments.target;
    SYNCOPATE_ASSIGN_OR_RETURN(request.target, CheckRank("--target", target, request.active));
  } else if (arguments.target >= 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--target: ", Name(request.collective), " has none"));
  }
  return request;
}

// The published linear programs take long on larger networks.
constexpr size_t kWorkersComparedMax = 64;

// Where forest was asked for: plans, and leaves a selection without a program if that would be too
// large to be played.
absl::Status PlanForestFirst(const plan::ForestOptions& forest, uint64_t steps_max,
                             PlanReport& report) {
  report.forest.emplace();
  report.forest->options = forest;
  SYNCOPATE_RETURN_IF_ERROR(PlanTimed(report.topology, report.placement, report.request.active,
                                      MonotonicClock(), *report.forest));
  const uint64_t steps = LeastStepsOf(report.forest->plan);
  if (steps > steps_max) {
    plan::Candidate& candidate = report.selection.candidates.emplace_back();
    candidate.algorithm = std::string(plan::kForest);
    candidate.skipped = absl::StrCat("its program has at least ", steps, " steps, more than the ",
                                     steps_max, " that are played; --steps-max allows more");
  }
  return absl::OkStatus();
}

absl::Status Select(const plan::SelectOptions& options, PlanReport& report) {
  absl::StatusOr<plan::Selection> selection = plan::SelectProgram(
      report.request, SizeOf(report.type), report.topology, report.placement, options);
  if (selection.ok()) {
    report.selection = *std::move(selection);
    return absl::OkStatus();
  }
  if (report.forest && absl::IsResourceExhausted(selection.status())) {
    plan::Candidate& candidate = report.selection.candidates.emplace_back();
    candidate.algorithm = std::string(plan::kForest);
    candidate.skipped = absl::StrCat(selection.status().message(), "; --steps-max allows more");
    return absl::OkStatus();
  }
  return selection.status();
}

// Predictions are made by what was measured, but jobs choose by fixed costs. Where these differ, what
// a job would run comes first.
absl::Status ChooseAsJobsDo(const PlanArguments& arguments, plan::SelectOptions options,
                            PlanReport& report) {
  const Topology fixed = SingleHostTopology(arguments.workers, CostsOfJobs(arguments));
  SYNCOPATE_ASSIGN_OR_RETURN(
      const plan::Selection choice,
      plan::SelectProgram(report.request, SizeOf(report.type), fixed, report.placement, options));
  plan::Selection& all = report.selection;
  const plan::Candidate quickest = all.candidates[0];
  if (choice.candidates[0].algorithm == quickest.algorithm) return absl::OkStatus();
  options.algorithm = choice.candidates[0].algorithm;
  SYNCOPATE_ASSIGN_OR_RETURN(plan::Selection chosen,
                             plan::SelectProgram(report.request, SizeOf(report.type),
                                                 report.topology, report.placement, options));
  const plan::Candidate winner = chosen.candidates[0];
  std::erase_if(all.candidates, [&](const plan::Candidate& candidate) {
    return Describe(candidate) == Describe(winner);
  });
  all.candidates.insert(all.candidates.begin(), winner);
  all.program = std::move(chosen.program);
  all.cost = std::move(chosen.cost);
  all.why = absl::StrCat(chosen.why, ". ", Describe(quickest), " would take ",
                         FormatSeconds(quickest.seconds),
                         " by what was measured here, but jobs choose by fixed costs, so that all "
                         "their workers choose alike");
  return absl::OkStatus();
}

// The chosen plan is a forest: its proof is checked, and what the report shows of it found out.
absl::Status ReportForest(const PlanArguments& arguments, const plan::ForestOptions& options,
                          PlanReport& report) {
  if (!report.forest) {
    report.forest.emplace();
    report.forest->options = options;
    SYNCOPATE_RETURN_IF_ERROR(PlanTimed(report.topology, report.placement, report.request.active,
                                        MonotonicClock(), *report.forest));
  }
  if (const plan::ForestPlan* chosen = plan::ForestOf(report.selection.candidates[0])) {
    report.forest->plan = *chosen;
  }
  SYNCOPATE_RETURN_IF_ERROR(CheckForest(report.topology, report.placement, *report.forest));
  if (arguments.explain && report.request.active.size() > 1 &&
      report.placement.size() <= kWorkersComparedMax) {
    SYNCOPATE_RETURN_IF_ERROR(
        CompareWithPublished(report.topology, report.placement, *report.forest));
  }
  if (!report.has_program()) return absl::OkStatus();
  report.forest->chunk_bytes = LargestChunk(report.selection.program) * SizeOf(report.type);
  if (arguments.export_form != "msccl") return absl::OkStatus();
  return WithAdvice(CutEvenlyForMscclExport(report.request, SizeOf(report.type), report.topology,
                                            report.placement, report.selection, *report.forest));
}

absl::StatusOr<PlanReport> MakeReport(const PlanArguments& arguments) {
  PlanReport report;
  if (arguments.workers < 0 || arguments.workers > limits::kWorkersMax) {
    return absl::InvalidArgumentError(absl::StrCat(
        "-n: ", arguments.workers, " is not a number of workers from 1 to ", limits::kWorkersMax));
  }
  if (arguments.pieces < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--pieces: ", arguments.pieces, " is not a positive number"));
  }
  const absl::StatusOr<DataType> type = ParseDataType(arguments.type);
  if (!type.ok()) return At("--type", type.status());
  report.type = *type;
  SYNCOPATE_ASSIGN_OR_RETURN(report.topology, LoadTopology(arguments, report.host));
  const int devices = static_cast<int>(Devices(report.topology).size());
  const int workers =
      arguments.workers > 0 ? arguments.workers : std::min(devices, limits::kWorkersMax);
  SYNCOPATE_ASSIGN_OR_RETURN(report.request, MakeRequest(arguments, workers, report.type));
  const absl::StatusOr<std::vector<int>> placement = PlaceInOrder(report.topology, workers);
  if (!placement.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(arguments.topology, ": ", placement.status().message()));
  }
  report.placement = *placement;
  plan::SelectOptions options;
  if (arguments.algorithm != "auto") options.algorithm = arguments.algorithm;
  options.pieces = arguments.pieces;
  options.steps_max = arguments.steps_max;
  SYNCOPATE_ASSIGN_OR_RETURN(const plan::ForestOptions forest,
                             ParseForestOptions(arguments.forest));
  options.data = plan::ForestSettings(forest);
  if (options.algorithm == plan::kForest && report.request.collective == Collective::kAllReduce) {
    SYNCOPATE_RETURN_IF_ERROR(PlanForestFirst(forest, options.steps_max, report));
  }
  if (report.selection.candidates.empty()) {
    SYNCOPATE_RETURN_IF_ERROR(Select(options, report));
    if (report.host && !report.host->measured.empty() && options.algorithm.empty()) {
      SYNCOPATE_RETURN_IF_ERROR(ChooseAsJobsDo(arguments, options, report));
    }
  }
  if (report.selection.candidates[0].algorithm == plan::kForest) {
    SYNCOPATE_RETURN_IF_ERROR(ReportForest(arguments, forest, report));
  }
  if (report.has_program()) {
    SYNCOPATE_ASSIGN_OR_RETURN(report.proof, ProveProgram(report.selection.program));
  }
  return report;
}

absl::StatusOr<std::string> Export(const PlanArguments& arguments, const PlanReport& report) {
  if (!report.has_program()) {
    return absl::FailedPreconditionError(
        absl::StrCat("--export: there is no program: ", report.selection.candidates[0].skipped));
  }
  if (arguments.export_form != "msccl") return ToText(report.selection.program);
  absl::StatusOr<std::string> xml = ToMscclXml(report.selection.program);
  if (!xml.ok()) return WithAdvice(xml.status());
  return xml;
}

absl::Status CheckForms(const PlanArguments& arguments) {
  const std::string& form = arguments.export_form;
  if (!form.empty() && form != "text" && form != "msccl") {
    return absl::InvalidArgumentError(
        absl::StrCat("--export: \"", form, "\" is not a form; choose text or msccl"));
  }
  if (!form.empty() && arguments.output.empty() && (arguments.json || arguments.explain)) {
    return absl::InvalidArgumentError(
        "--export: the program and the report would both go to standard output; name a file for "
        "the program with -o");
  }
  const std::string& algorithm = arguments.algorithm;
  if (arguments.forest != ForestArguments() && !algorithm.empty() && algorithm != "auto" &&
      algorithm != plan::kForest) {
    return absl::InvalidArgumentError(
        absl::StrCat("--no-relays, --trees, --depth, --loss and --stages are for forest plans, not "
                     "for ",
                     algorithm, "; use --strategy forest"));
  }
  return absl::OkStatus();
}

// What --export gives out of a schedule.
absl::StatusOr<std::string> ExportSchedule(const PlanArguments& arguments,
                                           const ScheduleReport& report) {
  if (arguments.export_form == "table") return ToJson(report.table);
  if (!arguments.export_form.empty() && arguments.export_form != "text") {
    return absl::InvalidArgumentError(
        absl::StrCat("--export: \"", arguments.export_form,
                     "\" is not a form of a schedule; choose text or table"));
  }
  if (report.schedules.size() > 1) {
    return absl::InvalidArgumentError(
        "--export: there are several schedules; choose one, as --schedule search");
  }
  return ToText(report.schedules[0].schedule);
}

// The forms in which a plan can be shown. Those that were not asked for are not made.
struct Forms {
  std::function<absl::StatusOr<std::string>()> exported;
  std::function<std::string()> svg;
  std::function<std::string()> json;
  std::function<std::string()> summary;
  std::function<std::string()> explanation;
};

absl::Status Show(const PlanArguments& arguments, const Forms& forms, std::ostream& out) {
  if (!arguments.export_form.empty() || !arguments.output.empty()) {
    SYNCOPATE_ASSIGN_OR_RETURN(const std::string text, forms.exported());
    if (arguments.output.empty()) {
      out << text;
      return absl::OkStatus();
    }
    SYNCOPATE_RETURN_IF_ERROR(WriteFile(arguments.output, text));
  }
  if (!arguments.svg.empty()) {
    SYNCOPATE_RETURN_IF_ERROR(WriteFile(arguments.svg, forms.svg()));
  }
  if (arguments.json) {
    out << forms.json();
    return absl::OkStatus();
  }
  out << forms.summary();
  if (arguments.explain) out << "\n" << forms.explanation();
  return absl::OkStatus();
}

absl::Status PlanSchedule(const PlanArguments& arguments, std::ostream& out) {
  SYNCOPATE_ASSIGN_OR_RETURN(const ScheduleReport report, MakeScheduleReport(arguments.schedule));
  return Show(arguments,
              {.exported = [&] { return ExportSchedule(arguments, report); },
               .svg = [&] { return SchedulesToSvg(report); },
               .json = [&] { return ScheduleReportToJson(report); },
               .summary = [&] { return FormatScheduleSummary(report); },
               .explanation = [&] { return FormatScheduleExplanation(report); }},
              out);
}

absl::StatusOr<GroupRequest> MakeGroupRequest(const PlanArguments& arguments) {
  if (arguments.topology.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--strategy ", arguments.algorithm,
        " needs to know the network: measure it with syncopate probe -H node1,node2 --topology-out "
        "net.json, then give --topology net.json"));
  }
  if (arguments.collective != "all-reduce" || arguments.active || arguments.pieces > 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--strategy ", arguments.algorithm,
                     " averages the models of all workers; leave out --collective, --active and "
                     "--pieces"));
  }
  if (!arguments.export_form.empty() && arguments.export_form != "text") {
    return absl::InvalidArgumentError(absl::StrCat("--export: \"", arguments.export_form,
                                                   "\" is not a form of a pattern; choose text"));
  }
  GroupRequest request;
  request.strategy = arguments.algorithm;
  request.options = arguments.groups;
  const absl::StatusOr<DataType> type = ParseDataType(arguments.type);
  if (!type.ok()) return At("--type", type.status());
  request.type = *type;
  const absl::StatusOr<uint64_t> bytes = ParseBytes(arguments.bytes, kBytesMax);
  if (!bytes.ok()) return At("--bytes", bytes.status());
  request.bytes = *bytes / SizeOf(*type) * SizeOf(*type);
  if (arguments.workers < 0 || arguments.workers > limits::kWorkersMax) {
    return absl::InvalidArgumentError(absl::StrCat(
        "-n: ", arguments.workers, " is not a number of workers from 1 to ", limits::kWorkersMax));
  }
  request.workers = arguments.workers;
  std::optional<AssumedHost> host;
  SYNCOPATE_ASSIGN_OR_RETURN(request.topology, LoadTopology(arguments, host));
  return request;
}

absl::Status PlanGroups(const PlanArguments& arguments, std::ostream& out) {
  SYNCOPATE_ASSIGN_OR_RETURN(const GroupRequest request, MakeGroupRequest(arguments));
  absl::StatusOr<GroupsReport> made = MakeGroupsReport(request);
  if (absl::IsFailedPrecondition(made.status())) {  // more workers than devices
    return absl::InvalidArgumentError(
        absl::StrCat(arguments.topology, ": ", made.status().message()));
  }
  SYNCOPATE_RETURN_IF_ERROR(made.status());
  const GroupsReport& report = *made;
  return Show(arguments,
              {.exported = [&] { return ToText(report.pattern()); },
               .svg = [&] { return GroupsToSvg(report); },
               .json = [&] { return GroupsReportToJson(report); },
               .summary = [&] { return FormatGroupsSummary(report); },
               .explanation = [&] { return FormatGroupsExplanation(report); }},
              out);
}

absl::Status Plan(const PlanArguments& arguments, std::ostream& out) {
  if (arguments.schedule.asked()) return PlanSchedule(arguments, out);
  if (IsGroupStrategy(arguments.algorithm)) return PlanGroups(arguments, out);
  if (arguments.groups != GroupArguments()) {
    return absl::InvalidArgumentError(
        "--slow and --optimize are for groups; use them with --strategy ds-sync");
  }
  SYNCOPATE_RETURN_IF_ERROR(CheckForms(arguments));
  SYNCOPATE_ASSIGN_OR_RETURN(const PlanReport report, MakeReport(arguments));
  return Show(arguments,
              {.exported = [&] { return Export(arguments, report); },
               .svg = [&] { return PlanToSvg(report); },
               .json = [&] { return PlanToJson(report); },
               .summary = [&] { return FormatSummary(report); },
               .explanation = [&] { return FormatExplanation(report); }},
              out);
}

constexpr char kPlanExamples[] =
    "Examples:\n"
    "  syncopate plan -n 8 --bytes 1M --explain            an all-reduce on this machine\n"
    "  syncopate plan --topology net.json --bytes 100M     on a network, a worker a device\n"
    "  syncopate plan --collective broadcast -n 8 --active 0-3,6 --root 2 --bytes 64K\n"
    "  syncopate plan -n 4 --algorithm ring --pieces 4 --export msccl -o ring.xml\n"
    "  syncopate plan --topology net.json --strategy forest --explain --svg net.svg\n"
    "  syncopate plan --topology net.json --strategy ds-sync --bytes 144M --slow rack1 --explain\n"
    "  syncopate plan --schedule all --model resnet-152 --costs 1.4ms,1.7ns,1.5 --svg lines.svg\n"
    "A topology file is described in docs/topology.md, schedules in docs/asc-wfbp.md, ds-sync in\n"
    "docs/ds-sync.md.";

}  // namespace

int RunPlan(const PlanArguments& arguments, std::ostream& out, std::ostream& err) {
  const absl::Status status = Plan(arguments, out);
  if (status.ok()) return kDone;
  err << "syncopate plan: "
      << absl::StrJoin(absl::StrSplit(std::string(status.message()), '\n', absl::SkipEmpty()), " ")
      << "\n";
  return absl::IsInvalidArgument(status) || absl::IsNotFound(status) ? kBadUsage : kFailed;
}

void AddPlanCommand(CLI::App& app, int& exit_code) {
  // Shared with the callback, which lives as long as the app.
  auto arguments = std::make_shared<PlanArguments>();
  arguments->cores = AllowedCpus();
  CLI::App* plan = app.add_subcommand(
      "plan", "Choose the program of a collective by its predicted time, and say why");
  plan->add_option("--collective,collective", arguments->collective,
                   "all-reduce, reduce, broadcast, all-gather, reduce-scatter, gather, scatter, "
                   "all-to-all, barrier or send-receive")
      ->capture_default_str();
  plan->add_option("-n,--workers", arguments->workers,
                   "workers; with --topology: one for each device unless given");
  plan->add_option("-b,--bytes", arguments->bytes, "data of a worker: 4096, 64K, 1.5M, 2G")
      ->capture_default_str();
  plan->add_option("--type", arguments->type, "float32, float64, float16, bfloat16, int32 or int64")
      ->capture_default_str();
  plan->add_option("--topology", arguments->topology,
                   "file that describes the network; without, all workers are on this machine");
  plan->add_option("--cores", arguments->cores, "cores of the machine where there is no topology")
      ->check(WholeNumber(1, 1 << 20))
      ->capture_default_str();
  plan->add_option_function<std::string>(
      "--active", [arguments](const std::string& ranks) { arguments->active = ranks; },
      "workers that take part, as 0-3,6 (all)");
  plan->add_option("--root", arguments->root,
                   "rank of the root or sender (default: the first active worker)")
      ->check(WholeNumberFrom(0));
  plan->add_option("--target", arguments->target,
                   "send-receive: rank of the receiver (default: the last active worker)")
      ->check(WholeNumberFrom(0));
  plan->add_option(
      "--strategy,--algorithm", arguments->algorithm,
      "consider only this one: ring, forest, ... (auto: all); or plan groups that average "
      "parameters: ds-sync, gossip");
  plan->add_flag("--no-relays", arguments->forest.no_relays,
                 "forest: workers that are not active pass nothing on");
  plan->add_option("--trees", arguments->forest.trees,
                   "forest: use at most this many pairs of trees (default: any number)")
      ->check(WholeNumber(1, 1 << 20));
  plan->add_option("--depth", arguments->forest.depth, "forest: trees of at most this depth")
      ->check(WholeNumber(1, 1 << 20));
  plan->add_option("--loss", arguments->forest.loss,
                   "forest: how much slower fewer trees may be, as 1% or 0.01 (1%)");
  plan->add_option("--stages", arguments->forest.stages,
                   "forest: one (the default), two; to compare, separate or paper: the published "
                   "linear programs (4) and (8)");
  plan->add_option("--pieces", arguments->pieces, "consider only this number of pieces")
      ->check(WholeNumberFrom(1));
  plan->add_option("--steps-max", arguments->steps_max,
                   "leave out programs of more steps, which take long to predict")
      ->check(WholeNumberFrom(1))
      ->capture_default_str();
  plan->add_flag("--explain", arguments->explain,
                 "show all candidates, why one won and what its time goes to");
  plan->add_flag("--json", arguments->json, "print one JSON object");
  plan->add_option("--export", arguments->export_form,
                   "give out the program itself: text (docs/program.md) or msccl (XML); of a "
                   "schedule: text, or the table of its tensors; of groups: text");
  plan->add_option("-o,--output", arguments->output,
                   "file for the exported program; without, standard output");
  plan->add_option("--svg", arguments->svg,
                   "file for a picture of the network, its loads and the trees, or of the "
                   "timelines of schedules");
  AddScheduleOptions(*plan, arguments->schedule);
  AddGroupOptions(*plan, arguments->groups);
  plan->footer(kPlanExamples);
  plan->callback([arguments, &exit_code] {
    const InterruptLine interrupt("plan");
    // What was measured is that of this machine with the cores that this process has.
    arguments->measured =
        LoadMeasuredHost(ProcessEnvironment(), DescribeMachine({}, AllowedCpus()));
    exit_code = RunPlan(*arguments, std::cout, std::cerr);
  });
}

}  // namespace syncopate::tools
