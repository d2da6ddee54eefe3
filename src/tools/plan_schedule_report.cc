// How `syncopate plan --schedule` shows its result (plan_schedule.h).
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/figures.h"
#include "base/parse.h"
#include "base/units.h"
#include "nlohmann/json.hpp"
#include "tools/plan_schedule.h"

namespace syncopate::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kTransfersShown = 16;

std::string Milliseconds(double seconds) { return absl::StrFormat("%.2f", seconds * 1e3); }

uint64_t BytesOf(const TensorTable& table, const Transfer& transfer) {
  uint64_t bytes = 0;
  for (int i = transfer.first; i <= transfer.last; ++i) {
    bytes += table.tensors[static_cast<size_t>(i)].bytes();
  }
  return bytes;
}

const PlannedSchedule& Best(const ScheduleReport& report) {
  return *std::min_element(report.schedules.begin(), report.schedules.end(),
                           [](const PlannedSchedule& x, const PlannedSchedule& y) {
                             return x.timeline.iteration_seconds < y.timeline.iteration_seconds;
                           });
}

void AppendTransfer(const ScheduleReport& report, const PlannedSchedule& planned, size_t i,
                    std::string& text) {
  const Transfer& transfer = planned.schedule.transfers[i];
  const schedule::TransferTimes& times = planned.timeline.transfers[i];
  const std::string tensors = transfer.first == transfer.last
                                  ? absl::StrCat(transfer.first)
                                  : absl::StrCat(transfer.first, "-", transfer.last);
  absl::StrAppend(&text,
                  absl::StrFormat("  %-9s %11s %7d %9s %9s %9s %9s\n", tensors,
                                  FormatBytes(BytesOf(report.table, transfer)), transfer.beside,
                                  Milliseconds(times.ready), Milliseconds(times.start),
                                  Milliseconds(times.moving), Milliseconds(times.end)));
}

// What the end of the iteration waits for.
std::string HeldUpBy(const PlannedSchedule& planned) {
  const std::vector<schedule::TransferTimes>& transfers = planned.timeline.transfers;
  if (planned.timeline.exposed_seconds <= 0) return "nothing: all transfers are hidden";
  double begun = transfers.front().start;
  double idle = 0;
  double end = begun;
  for (const schedule::TransferTimes& times : transfers) {
    idle += std::max(0.0, times.start - end);
    end = std::max(end, times.end);
  }
  return absl::StrFormat(
      "the first transfer starts at %s ms, the network then has nothing to do for %s ms, and the "
      "last transfer ends %s ms after the last gradient is ready",
      Milliseconds(begun), Milliseconds(idle),
      Milliseconds(end - planned.timeline.backward.front().end));
}

Json TransfersToJson(const ScheduleReport& report, const PlannedSchedule& planned) {
  Json list = Json::array();
  for (size_t i = 0; i < planned.schedule.transfers.size(); ++i) {
    const Transfer& transfer = planned.schedule.transfers[i];
    const schedule::TransferTimes& times = planned.timeline.transfers[i];
    list.push_back({{"first", transfer.first},
                    {"last", transfer.last},
                    {"beside", transfer.beside},
                    {"bytes", BytesOf(report.table, transfer)},
                    {"ready", times.ready},
                    {"start", times.start},
                    {"moving", times.moving},
                    {"end", times.end}});
  }
  return list;
}

}  // namespace

std::string FormatScheduleSummary(const ScheduleReport& report) {
  std::string text = absl::StrFormat(
      "%s: %s, %s, %s; forward %s, backward %s\n"
      "an all-reduce: %s to start up, %.4g ns a byte, gamma %s\n\n"
      "%-9s %12s %12s %10s %8s %9s\n",
      report.table.model, CountOf(static_cast<uint64_t>(report.table.size()), "tensor"),
      CountOf(report.table.elements(), "parameter"), FormatBytes(report.table.bytes()),
      FormatSeconds(report.table.forward_seconds()), FormatSeconds(report.table.backward_seconds()),
      FormatSeconds(report.costs.a), report.costs.b * 1e9, absl::StrJoin(report.costs.gamma, ", "),
      "schedule", "iteration ms", "exposed ms", "transfers", "at once", "speed-up");
  const double slowest =
      std::max_element(report.schedules.begin(), report.schedules.end(),
                       [](const PlannedSchedule& x, const PlannedSchedule& y) {
                         return x.timeline.iteration_seconds < y.timeline.iteration_seconds;
                       })
          ->timeline.iteration_seconds;
  for (const PlannedSchedule& planned : report.schedules) {
    const schedule::IterationTimeline& timeline = planned.timeline;
    absl::StrAppend(
        &text, absl::StrFormat("%-9s %12s %12s %10d %8d %8.2fx\n", planned.schedule.planner,
                               Milliseconds(timeline.iteration_seconds),
                               Milliseconds(timeline.exposed_seconds), timeline.transfers.size(),
                               timeline.at_once_max, slowest / timeline.iteration_seconds));
  }
  if (report.bound_seconds > 0) {
    absl::StrAppend(
        &text,
        absl::StrFormat(
            "no schedule takes less than %s ms; %s is within %s %% "
            "of that\n",
            Milliseconds(report.bound_seconds), Best(report).schedule.planner,
            Fixed(100 * (Best(report).timeline.iteration_seconds / report.bound_seconds - 1), 1)));
  }
  return text;
}

std::string FormatScheduleExplanation(const ScheduleReport& report) {
  std::string text;
  for (const PlannedSchedule& planned : report.schedules) {
    const auto found =
        std::find_if(schedule::SchedulePlanners().begin(), schedule::SchedulePlanners().end(),
                     [&](const schedule::SchedulePlanner& planner) {
                       return planner.name == planned.schedule.planner;
                     });
    absl::StrAppend(&text, planned.schedule.planner, ": ",
                    found == schedule::SchedulePlanners().end() ? "" : found->summary, "\n",
                    absl::StrFormat("  %-9s %11s %7s %9s %9s %9s %9s\n", "tensors", "size",
                                    "beside", "ready ms", "start", "moving", "end"));
    const size_t count = planned.schedule.transfers.size();
    for (size_t i = 0; i < count; ++i) {
      // The middle of a long list is left out.
      if (count > kTransfersShown && i == kTransfersShown / 2) {
        absl::StrAppend(&text, "  ... ", count - kTransfersShown, " more\n");
        i = count - kTransfersShown / 2;
      }
      AppendTransfer(report, planned, i, text);
    }
    absl::StrAppend(&text, "  held up by: ", HeldUpBy(planned), "\n\n");
  }
  absl::StrAppend(&text, "why: ", Best(report).schedule.planner, " has the shortest iteration, ",
                  Milliseconds(Best(report).timeline.iteration_seconds), " ms\n");
  return text;
}

std::string ScheduleReportToJson(const ScheduleReport& report) {
  Json schedules = Json::array();
  for (const PlannedSchedule& planned : report.schedules) {
    schedules.push_back({{"schedule", planned.schedule.planner},
                         {"iteration_seconds", planned.timeline.iteration_seconds},
                         {"compute_seconds", planned.timeline.compute_seconds},
                         {"exposed_seconds", planned.timeline.exposed_seconds},
                         {"sending_seconds", planned.timeline.sending_seconds},
                         {"at_once_max", planned.timeline.at_once_max},
                         {"digest", DigestOf(planned.schedule).ToString()},
                         {"transfers", TransfersToJson(report, planned)}});
  }
  Json json = {
      {"model", report.table.model},
      {"tensors", report.table.size()},
      {"parameters", report.table.elements()},
      {"bytes", report.table.bytes()},
      {"forward_seconds", report.table.forward_seconds()},
      {"backward_seconds", report.table.backward_seconds()},
      {"costs", {{"a", report.costs.a}, {"b", report.costs.b}, {"gamma", report.costs.gamma}}},
      {"overlap_forward", report.options.overlap_forward},
      {"best", Best(report).schedule.planner},
      {"schedules", std::move(schedules)}};
  if (report.bound_seconds > 0) json["bound_seconds"] = report.bound_seconds;
  return json.dump(1) + "\n";
}

}  // namespace syncopate::tools
