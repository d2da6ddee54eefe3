#include "tools/plan_forest.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/parse.h"
#include "base/status.h"
#include "model/program_msccl.h"
#include "plan/collective/fluid_time.h"

namespace syncopate::tools {
namespace {

constexpr std::pair<absl::string_view, plan::Stages> kStages[] = {
    {"one", plan::Stages::kOne},
    {"two", plan::Stages::kTwo},
    {"separate", plan::Stages::kSeparate},
    {"paper", plan::Stages::kEqualOverlapped},
};
// With a larger loss the plan would not be one for this network any more.
constexpr double kLossMax = 0.5;

absl::StatusOr<double> ParseLoss(absl::string_view text) {
  absl::string_view number = text;
  const bool percent = absl::ConsumeSuffix(&number, "%");
  const absl::StatusOr<double> value = ParseDouble(number, 0, kLossMax * (percent ? 100 : 1));
  if (value.ok()) return *value / (percent ? 100 : 1);
  return absl::InvalidArgumentError(absl::StrCat("--loss: \"", text, "\" is not a part from 0 to ",
                                                 kLossMax, "; write 1% or 0.01"));
}

absl::StatusOr<plan::Stages> ParseStages(absl::string_view text) {
  for (const auto& [name, stages] : kStages) {
    if (text == name) return stages;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--stages: \"", text, "\" is not a way to plan; choose one, two, separate or paper"));
}

// MSCCL cuts data evenly, and has at most 256 steps between two workers: the finer the cut, the
// nearer to the shares, until there are too many.
constexpr uint32_t kEqualChunks[] = {256, 192, 128, 96, 64, 48, 32, 24, 16, 8, 4, 2, 1};
// `children` has those of each worker, in the order of their ranks.
void AppendTree(const std::vector<std::vector<int>>& children, int at, std::string& text) {
  absl::StrAppend(&text, at);
  if (children[at].empty()) return;
  std::vector<int> leaves;
  std::vector<int> others;
  for (const int child : children[at]) {
    (children[child].empty() ? leaves : others).push_back(child);
  }
  text += '(';
  if (!leaves.empty()) absl::StrAppend(&text, FormatRanks(leaves));
  for (const int child : others) {
    if (text.back() != '(') text += ' ';
    AppendTree(children, child, text);
  }
  text += ')';
}

}  // namespace

absl::string_view Name(plan::Stages stages) {
  for (const auto& [name, value] : kStages) {
    if (stages == value) return name;
  }
  return "one";
}

absl::StatusOr<plan::ForestOptions> ParseForestOptions(const ForestArguments& arguments) {
  plan::ForestOptions options;
  options.relays = !arguments.no_relays;
  if (arguments.trees < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--trees: ", arguments.trees, " is not a positive number"));
  }
  if (arguments.depth < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--depth: ", arguments.depth, " is not a positive number"));
  }
  options.trees_max = arguments.trees;
  options.depth_max = arguments.depth;
  if (!arguments.loss.empty()) {
    SYNCOPATE_ASSIGN_OR_RETURN(options.loss, ParseLoss(arguments.loss));
  }
  if (!arguments.stages.empty()) {
    SYNCOPATE_ASSIGN_OR_RETURN(options.stages, ParseStages(arguments.stages));
  }
  return options;
}

absl::Status CheckForest(const Topology& topology, absl::Span<const int> placement,
                         ForestReport& report) {
  if (report.options.stages != plan::Stages::kOne) return absl::OkStatus();
  SYNCOPATE_RETURN_IF_ERROR(
      At("the plan's certificate does not hold",
         plan::CheckCertificate(topology, placement, report.plan.active, report.options.relays,
                                report.plan.pairs, report.plan.certificate)));
  report.checked = true;
  return absl::OkStatus();
}

absl::Status PlanTimed(const Topology& topology, absl::Span<const int> placement,
                       absl::Span<const int> active, const Clock& clock, ForestReport& report) {
  const int64_t begin_ns = clock.NowNs();
  SYNCOPATE_ASSIGN_OR_RETURN(report.plan,
                             plan::PlanForest(topology, placement, active, report.options));
  report.plan_seconds = static_cast<double>(clock.NowNs() - begin_ns) * 1e-9;
  return absl::OkStatus();
}

uint64_t LeastStepsOf(const plan::ForestPlan& plan) {
  uint64_t edges = 0;
  for (const plan::TreePair& pair : plan.pairs) {
    edges += plan::EdgesFromRoot(pair.reduce).size() + plan::EdgesFromRoot(pair.broadcast).size();
  }
  return 2 * edges;  // each is sent and received
}

uint64_t LargestChunk(const Program& program) {
  uint64_t largest = 0;
  for (size_t i = 1; i < program.data_bounds.size(); ++i) {
    largest = std::max(largest, program.data_bounds[i] - program.data_bounds[i - 1]);
  }
  return largest;
}

absl::Status CutEvenlyForMscclExport(const plan::CollectiveRequest& request,
                                     size_t bytes_per_element, const Topology& topology,
                                     absl::Span<const int> placement, plan::Selection& selection,
                                     ForestReport& report) {
  absl::Status refused = absl::FailedPreconditionError("MSCCL cannot express it: there is no data");
  const double packed =
      report.plan.seconds_per_byte * static_cast<double>(request.elements * bytes_per_element);
  for (const uint32_t chunks : kEqualChunks) {
    if (chunks > request.elements) continue;
    SYNCOPATE_ASSIGN_OR_RETURN(Program program,
                               plan::MakeEvenForestProgram(request, report.plan, chunks));
    if (const absl::StatusOr<std::string> xml = ToMscclXml(program); !xml.ok()) {
      refused = xml.status();
      continue;
    }
    SYNCOPATE_ASSIGN_OR_RETURN(cost::ProgramCost cost,
                               cost::CostOf(program, topology, placement, bytes_per_element));
    if (report.equal_chunks > 0 && cost.seconds >= selection.candidates[0].seconds) continue;
    SYNCOPATE_ASSIGN_OR_RETURN(
        const plan::FluidTime time,
        plan::FluidTimeOf(program, topology, placement, bytes_per_element, {}));
    report.equal_chunks = chunks;
    report.equal_chunks_loss = packed > 0 ? std::max(0.0, time.pipelined / packed - 1) : 0;
    report.chunk_bytes = LargestChunk(program) * bytes_per_element;
    plan::Candidate& winner = selection.candidates[0];
    winner.variant = absl::StrCat(chunks, " equal chunks");
    winner.seconds = cost.seconds;
    winner.messages = cost.messages;
    winner.bytes_sent_max = cost.bytes_sent_max;
    winner.bytes_sent_total = cost.bytes_sent_total;
    selection.why = "MSCCL cuts data into equal chunks, so the best of these cuts was taken";
    selection.program = std::move(program);
    selection.cost = std::move(cost);
  }
  return report.equal_chunks > 0 ? absl::OkStatus() : refused;
}

absl::Status CompareWithPublished(const Topology& topology, absl::Span<const int> placement,
                                  ForestReport& report) {
  const auto solve = [&](plan::Stages stages) -> absl::StatusOr<double> {
    plan::ForestOptions options;
    options.relays = report.options.relays;
    options.gap = report.options.gap;
    options.stages = stages;
    SYNCOPATE_ASSIGN_OR_RETURN(const plan::ForestPlan plan,
                               plan::PlanForest(topology, placement, report.plan.active, options));
    return plan.seconds_per_byte;
  };
  SYNCOPATE_ASSIGN_OR_RETURN(report.separate_seconds, solve(plan::Stages::kSeparate));
  SYNCOPATE_ASSIGN_OR_RETURN(report.overlapped_seconds, solve(plan::Stages::kEqualOverlapped));
  return absl::OkStatus();
}

std::string TreeText(const plan::WorkerTree& tree) {
  std::vector<std::vector<int>> children(tree.parent.size());
  for (size_t worker = 0; worker < tree.parent.size(); ++worker) {
    const int parent = tree.parent[worker];
    if (parent >= 0 && parent != static_cast<int>(worker)) {
      children[parent].push_back(static_cast<int>(worker));
    }
  }
  std::string text;
  AppendTree(children, tree.root, text);
  return text;
}

}  // namespace syncopate::tools
