#include "tools/plan_schedule.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/limits.h"
#include "base/parse.h"
#include "base/status.h"
#include "base/units.h"
#include "schedule/models/model_tables.h"
#include "schedule/published.h"
#include "schedule/search.h"
#include "tools/command_line.h"

namespace syncopate::tools {
namespace {

constexpr double kScaleMax = 1e6;

absl::StatusOr<double> ParseScale(absl::string_view flag, const std::string& text) {
  const absl::StatusOr<double> scale = ParseDouble(text, 1e-9, kScaleMax);
  if (!scale.ok()) return At(flag, scale.status());
  return scale;
}

absl::StatusOr<TensorTable> LoadTable(const ScheduleArguments& arguments) {
  if (arguments.model.empty() == arguments.table.empty()) {
    return absl::InvalidArgumentError(
        arguments.model.empty() ? "say for which tensors: --model resnet-152, or --table FILE"
                                : "--model and --table both name the tensors; give one of them");
  }
  TensorTable table;
  if (!arguments.model.empty()) {
    absl::StatusOr<TensorTable> made = schedule::MakeModelTable(arguments.model);
    if (!made.ok()) return At("--model", made.status());
    table = *std::move(made);
  } else {
    SYNCOPATE_ASSIGN_OR_RETURN(const std::string text,
                               ReadFile(arguments.table, limits::kTensorTextBytesMax));
    absl::StatusOr<TensorTable> parsed = ParseTensorTable(text);
    if (!parsed.ok()) return At(arguments.table, parsed.status());
    table = *std::move(parsed);
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const double bytes,
                             ParseScale("--scale-bytes", arguments.scale_bytes));
  SYNCOPATE_ASSIGN_OR_RETURN(const double times,
                             ParseScale("--scale-times", arguments.scale_times));
  if (bytes == 1 && times == 1) return table;
  table = Scaled(table, bytes, times);
  const absl::Status status = Validate(table);
  if (!status.ok()) return At("scaled", status);
  return table;
}

// "1.4ms" or a number of seconds.
absl::StatusOr<double> ParseTime(absl::string_view text) {
  const absl::StatusOr<double> number = ParseDouble(text, 0, 60);
  return number.ok() ? number : ParseSeconds(text);
}

absl::StatusOr<schedule::ScheduleOptions> MakeOptions(const ScheduleArguments& arguments) {
  schedule::ScheduleOptions options;
  options.ways_max = arguments.ways;
  options.overlap_forward = arguments.overlap_forward;
  if (!arguments.bucket.empty()) {
    const absl::StatusOr<uint64_t> bytes = ParseBytes(arguments.bucket, uint64_t{1} << 40);
    if (!bytes.ok()) return At("--bucket", bytes.status());
    options.bucket_bytes = *bytes;
    options.first_bucket_bytes = std::min(options.first_bucket_bytes, *bytes);
  }
  return options;
}

}  // namespace

absl::StatusOr<cost::CommunicationCosts> LoadCosts(const std::string& text) {
  if (text.empty()) return schedule::PublishedCosts();
  if (text.find(',') == std::string::npos) {
    SYNCOPATE_ASSIGN_OR_RETURN(const std::string json, ReadFile(text, limits::kTensorTextBytesMax));
    absl::StatusOr<cost::CommunicationCosts> costs = cost::ParseCommunicationCosts(json);
    if (!costs.ok()) return At(text, costs.status());
    return costs;
  }
  const std::vector<std::string> parts = absl::StrSplit(text, ',');
  cost::CommunicationCosts costs;
  costs.source = "given";
  for (size_t i = 0; i < parts.size(); ++i) {
    const absl::StatusOr<double> number =
        i < 2 ? ParseTime(parts[i]) : ParseDouble(parts[i], 1, 1e6);
    if (!number.ok()) return At("--costs", number.status());
    if (i == 0) costs.a = *number;
    if (i == 1) costs.b = *number;
    if (i >= 2) costs.gamma.push_back(*number);
  }
  const absl::Status status = Validate(costs);
  if (!status.ok()) return At("--costs", status);
  return costs;
}

absl::StatusOr<ScheduleReport> MakeScheduleReport(
    const ScheduleArguments& arguments, const std::optional<cost::CommunicationCosts>& costs) {
  ScheduleReport report;
  SYNCOPATE_ASSIGN_OR_RETURN(report.table, LoadTable(arguments));
  if (costs) {
    report.costs = *costs;
  } else {
    SYNCOPATE_ASSIGN_OR_RETURN(report.costs, LoadCosts(arguments.costs));
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const schedule::ScheduleOptions options, MakeOptions(arguments));
  report.options.overlap_forward = arguments.overlap_forward;
  std::vector<absl::string_view> planners;
  if (arguments.schedule.empty() || arguments.schedule == "all") {
    for (const schedule::SchedulePlanner& planner : schedule::SchedulePlanners())
      planners.push_back(planner.name);
  } else {
    planners = absl::StrSplit(arguments.schedule, ',');
  }
  for (const absl::string_view planner : planners) {
    absl::StatusOr<Schedule> schedule =
        schedule::MakeSchedule(planner, report.table, report.costs, options);
    if (!schedule.ok()) return At("--schedule", schedule.status());
    SYNCOPATE_ASSIGN_OR_RETURN(
        schedule::IterationTimeline timeline,
        schedule::PredictTimeline(report.table, report.costs, *schedule, report.options));
    report.schedules.push_back({*std::move(schedule), std::move(timeline)});
  }
  if (!arguments.overlap_forward) {
    report.bound_seconds = schedule::IterationBound(report.table, report.costs, options);
  }
  return report;
}

void AddScheduleOptions(CLI::App& plan, ScheduleArguments& arguments) {
  const std::string names =
      absl::StrJoin(schedule::SchedulePlanners(), ", ",
                    [](std::string* out, const schedule::SchedulePlanner& planner) {
                      absl::StrAppend(out, planner.name);
                    });
  const std::string models = absl::StrJoin(schedule::KnownModels(), ", ",
                                           [](std::string* out, const schedule::KnownModel& model) {
                                             absl::StrAppend(out, model.name);
                                           });
  plan.add_option("--schedule", arguments.schedule,
                  absl::StrCat("instead of a collective, plan the gradient transfers of a model: ",
                               names, "; several as wfbp,search, or all"));
  plan.add_option("--model", arguments.model, absl::StrCat("schedule: the model: ", models));
  plan.add_option("--table", arguments.table,
                  "schedule: file with the tensors of a model (docs/asc-wfbp.md)");
  plan.add_option("--costs", arguments.costs,
                  "schedule: what an all-reduce costs: a file, or start-up, a byte and the "
                  "contention of 2, 3, ... at once, as 1.4ms,1.7ns,1.5 (the published ones)");
  plan.add_option("--scale-bytes", arguments.scale_bytes,
                  "schedule: multiply the bytes of every tensor by this factor (1)");
  plan.add_option("--scale-times", arguments.scale_times,
                  "schedule: multiply the computing time of every tensor by this factor (1)");
  plan.add_option("--bucket", arguments.bucket, "schedule: size of buckets (25M)");
  plan.add_option(
          "--ways", arguments.ways,
          "schedule: most transfers that a search runs at once (default: as many as --costs has)")
      ->check(WholeNumber(1, limits::kBesideMax + 1));
  plan.add_flag("--overlap-forward", arguments.overlap_forward,
                "schedule: the next forward of a layer waits for its own tensors only");
}

}  // namespace syncopate::tools
