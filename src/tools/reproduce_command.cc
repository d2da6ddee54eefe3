#include "tools/reproduce_command.h"

#include <algorithm>
#include <iostream>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/parse.h"
#include "base/status.h"
#include "tools/command_line.h"
#include "tools/interrupt.h"
#include "tools/reproduce/asc_wfbp.h"
#include "tools/reproduce/forest_report.h"
#include "tools/reproduce/forest_time.h"

namespace syncopate::tools {
namespace {

absl::StatusOr<reproduce::FigureOptions> MakeOptions(const ReproduceForestArguments& arguments) {
  reproduce::FigureOptions options;
  const absl::StatusOr<plan::BetweenNetwork> between = plan::ParseBetweenNetwork(arguments.network);
  if (!between.ok()) return At("--network", between.status());
  options.between = *between;
  if (arguments.inside != "pairs" && arguments.inside != "switches") {
    return absl::InvalidArgumentError(absl::StrCat(
        "--inside: \"", arguments.inside, "\" is not a network; choose pairs or switches"));
  }
  options.pcie_switches = arguments.inside == "switches";
  if (arguments.figures.empty()) return options;
  options.figures = arguments.figures;
  std::sort(options.figures.begin(), options.figures.end());
  options.figures.erase(std::unique(options.figures.begin(), options.figures.end()),
                        options.figures.end());
  for (const int figure : options.figures) {
    if (std::find(std::begin(reproduce::kFigures), std::end(reproduce::kFigures), figure) ==
        std::end(reproduce::kFigures)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--figure: there is no figure ", figure, "; choose 4, 5, 6 or 7"));
    }
  }
  return options;
}

absl::Status Reproduce(const ReproduceForestArguments& arguments,
                       const reproduce::ForestTimer& timer, Progress& progress, std::ostream& out) {
  SYNCOPATE_ASSIGN_OR_RETURN(const reproduce::FigureOptions options, MakeOptions(arguments));
  const absl::StatusOr<std::vector<reproduce::Figure>> figures =
      reproduce::MakeFigures(options, timer, progress);
  progress.Clear();
  if (!figures.ok()) return figures.status();
  if (!arguments.svg.empty()) {
    SYNCOPATE_RETURN_IF_ERROR(WriteFile(arguments.svg, reproduce::FiguresToSvg(*figures)));
  }
  out << (arguments.json ? reproduce::FiguresToJson(*figures, options)
                         : reproduce::FiguresToText(*figures, options));
  return absl::OkStatus();
}

constexpr char kReproduceExamples[] =
    "Examples:\n"
    "  syncopate reproduce forest                          all four figures, as tables\n"
    "  syncopate reproduce forest --figure 4 --svg four.svg\n"
    "  syncopate reproduce forest --figure 5 --network machine-pairs --json\n"
    "docs/forest-figures.md says what is assumed and what was found.";

constexpr char kAscWfbpExamples[] =
    "Examples:\n"
    "  syncopate reproduce asc-wfbp\n"
    "  syncopate reproduce asc-wfbp --json\n"
    "docs/asc-wfbp.md says what is assumed and what was found.";

void AddAscWfbp(CLI::App& reproduce, int& exit_code) {
  auto arguments = std::make_shared<ReproduceAscWfbpArguments>();
  CLI::App* asc_wfbp = reproduce.add_subcommand(
      "asc-wfbp",
      "Table IV of the simultaneous-communications paper: WFBP, MG-WFBP and ASC-WFBP on the "
      "timeline model, and our search");
  asc_wfbp->add_flag("--json", arguments->json, "print one JSON object");
  asc_wfbp->footer(kAscWfbpExamples);
  asc_wfbp->callback([arguments, &exit_code] {
    const InterruptLine interrupt("reproduce asc-wfbp");
    exit_code = RunReproduceAscWfbp(*arguments, std::cout, std::cerr);
  });
}

}  // namespace

int RunReproduceForest(const ReproduceForestArguments& arguments,
                       const reproduce::ForestTimer& timer, Progress& progress, std::ostream& out,
                       std::ostream& err) {
  const absl::Status status = Reproduce(arguments, timer, progress, out);
  if (status.ok()) return kDone;
  err << "syncopate reproduce forest: " << std::string(status.message()) << "\n";
  return absl::IsInvalidArgument(status) || absl::IsNotFound(status) ? kBadUsage : kFailed;
}

int RunReproduceAscWfbp(const ReproduceAscWfbpArguments& arguments, std::ostream& out,
                        std::ostream& err) {
  const absl::StatusOr<std::vector<reproduce::AscWfbpRow>> rows = reproduce::MakeAscWfbpRows();
  if (!rows.ok()) {
    err << "syncopate reproduce asc-wfbp: " << std::string(rows.status().message()) << "\n";
    return kFailed;
  }
  out << (arguments.json ? reproduce::AscWfbpToJson(*rows) : reproduce::AscWfbpToText(*rows));
  return kDone;
}

void AddReproduceCommand(CLI::App& app, int& exit_code) {
  CLI::App* reproduce =
      app.add_subcommand("reproduce", "Find published figures again with our planners");
  reproduce->require_subcommand(1);
  reproduce->footer(absl::StrCat(kReproduceExamples, "\n", kAscWfbpExamples));
  // Shared with the callback, which lives as long as the app.
  auto arguments = std::make_shared<ReproduceForestArguments>();
  CLI::App* forest = reproduce->add_subcommand(
      "forest",
      "Figures 4 to 7 of the tree-packing paper: our plans beside Blink, Plink, ring, "
      "double tree and parameter server");
  forest->add_option("--figure", arguments->figures, "4, 5, 6 or 7; several as 4,6 (all)")
      ->delimiter(',');
  forest
      ->add_option("--network", arguments->network,
                   "what the rate between machines belongs to: gpu-pairs, machine-pairs or "
                   "shared-nics")
      ->capture_default_str();
  forest
      ->add_option("--inside", arguments->inside,
                   "machines of 4 GPUs: a link for each of the pairs, or PCIe switches")
      ->capture_default_str();
  forest->add_flag("--json", arguments->json, "print one JSON object");
  forest->add_option("--svg", arguments->svg, "file for a picture of all bars");
  forest->footer(kReproduceExamples);
  forest->callback([arguments, &exit_code] {
    const InterruptLine interrupt("reproduce forest");
    const absl::StatusOr<ProgressOptions> style = ProgressOfThisProcess();
    if (!style.ok()) {
      exit_code = Complain("reproduce forest", style.status());
      return;
    }
    Progress progress("syncopate reproduce forest", *style, MonotonicClock(), std::cerr);
    exit_code = RunReproduceForest(*arguments, reproduce::MakeForestTimer(MonotonicClock()),
                                   progress, std::cout, std::cerr);
  });
  AddAscWfbp(*reproduce, exit_code);
}

}  // namespace syncopate::tools
