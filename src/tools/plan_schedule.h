// `syncopate plan --schedule`: what each scheduler of gradient transfers would do for a model on a
// network, and how long an iteration would take.
#ifndef SYNCOPATE_TOOLS_PLAN_SCHEDULE_H_
#define SYNCOPATE_TOOLS_PLAN_SCHEDULE_H_

#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cost/communication_costs.h"
#include "model/schedule.h"
#include "model/tensor_table.h"
#include "schedule/planners.h"
#include "schedule/timeline.h"

namespace syncopate::tools {

// As on the command line.
struct ScheduleArguments {
  std::string schedule;  // a planner or "all"; empty: not asked for
  std::string model;     // a known one
  std::string table;     // a file; one of the two
  std::string costs;     // a file, or "a,b,gamma2,..."; empty: the published ones
  std::string scale_bytes = "1";
  std::string scale_times = "1";
  std::string bucket;
  int ways = 0;
  bool overlap_forward = false;

  // Whether one of those that name the work was given.
  bool asked() const { return !(schedule.empty() && model.empty() && table.empty()); }
};

struct PlannedSchedule {
  Schedule schedule;
  schedule::IterationTimeline timeline;
};

struct ScheduleReport {
  TensorTable table;
  cost::CommunicationCosts costs;
  schedule::TimelineOptions options;
  double bound_seconds = 0;  // no schedule is shorter; 0: not known
  std::vector<PlannedSchedule> schedules;
};

// "1.4ms,1.7ns,1.5" (start-up, a byte, gamma of 2, 3, ... at once), or a JSON file.
absl::StatusOr<cost::CommunicationCosts> LoadCosts(const std::string& text);

// `costs`: instead of those of the arguments.
absl::StatusOr<ScheduleReport> MakeScheduleReport(
    const ScheduleArguments& arguments,
    const std::optional<cost::CommunicationCosts>& costs = std::nullopt);

std::string FormatScheduleSummary(const ScheduleReport& report);
// The transfers of each, and what holds each up.
std::string FormatScheduleExplanation(const ScheduleReport& report);
std::string ScheduleReportToJson(const ScheduleReport& report);

// Adds the options to `plan`; `arguments` must outlive the parsing.
void AddScheduleOptions(CLI::App& plan, ScheduleArguments& arguments);

}  // namespace syncopate::tools

#endif  // SYNCOPATE_TOOLS_PLAN_SCHEDULE_H_
