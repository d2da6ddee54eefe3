// What `syncopate replay` prints.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/figures.h"
#include "base/parse.h"
#include "base/units.h"
#include "nlohmann/json.hpp"
#include "tools/bench/statistics.h"
#include "tools/probe/allreduce.h"
#include "tools/train_replay.h"

namespace syncopate::tools {
namespace {

using nlohmann::ordered_json;

// The schedule that the others are compared with: the one of the planner `search`, or the last.
const ReplayedSchedule& Ours(const ReplayedModel& model) {
  for (const ReplayedSchedule& schedule : model.schedules) {
    if (schedule.name == "search") return schedule;
  }
  return model.schedules.back();
}

double Ms(double seconds) { return 1e3 * seconds; }

ordered_json ToJson(const SpeedUp& speed_up) {
  return {{"p50", speed_up.p50}, {"min", speed_up.min}, {"max", speed_up.max}};
}

}  // namespace

SpeedUp SpeedUpOf(const ReplayedSchedule& quick, const ReplayedSchedule& slow) {
  std::vector<double> ratios;
  for (size_t i = 0; i < std::min(quick.rounds.size(), slow.rounds.size()); ++i) {
    ratios.push_back(slow.rounds[i] / quick.rounds[i]);
  }
  if (ratios.empty()) return {};
  const auto [min, max] = std::minmax_element(ratios.begin(), ratios.end());
  return {.p50 = slow.measured_seconds / quick.measured_seconds, .min = *min, .max = *max};
}

std::string ToTable(const ReplayedModel& model) {
  const TensorTable& table = model.table;
  const cost::CommunicationCosts& costs = model.costs.fit.costs;
  std::string text = absl::StrFormat(
      "%s: %s, %s, computing %s\n", table.model,
      CountOf(static_cast<uint64_t>(table.size()), "tensor"), FormatBytes(table.bytes()),
      FormatSeconds(table.forward_seconds() + table.backward_seconds()));
  absl::StrAppendFormat(&text, "costs: a %s, b %.4g ns a byte, gamma %s", FormatSeconds(costs.a),
                        1e9 * costs.b,
                        absl::StrJoin(costs.gamma, " ", [](std::string* out, double gamma) {
                          absl::StrAppendFormat(out, "%.2f", gamma);
                        }));
  if (!model.costs.fit.points.empty()) {
    absl::StrAppendFormat(&text, "; residuals up to %.0f %%", 100 * model.costs.fit.ResidualMax());
  }
  const ReplayedSchedule& ours = Ours(model);
  absl::StrAppendFormat(&text, "\n%-10s %9s %7s %13s %12s %7s %12s %11s   %s\n", "schedule",
                        "transfers", "at once", "predicted ms", "measured ms", "off", "exposed ms",
                        "cores busy", absl::StrCat("time / ", ours.name));
  for (const ReplayedSchedule& row : model.schedules) {
    const SpeedUp speed_up = SpeedUpOf(ours, row);
    absl::StrAppendFormat(
        &text, "%-10s %9d %7d %13.1f %12.1f %5s %% %12.1f %11s   %.2f (%.2f to %.2f)\n", row.name,
        row.transfers, row.at_once_max, Ms(row.predicted_seconds), Ms(row.measured_seconds),
        FixedSigned(100 * row.Off(), 1), row.summary.exposed_comm_ms_p50.value_or(0),
        row.cores_busy ? absl::StrFormat("%.0f %%", 100 * *row.cores_busy) : "-", speed_up.p50,
        speed_up.min, speed_up.max);
  }
  return text + "\n";
}

std::string ToJson(const std::vector<ReplayedModel>& models, int workers) {
  ordered_json json;
  json["workers"] = workers;
  json["models"] = ordered_json::array();
  for (const ReplayedModel& model : models) {
    ordered_json entry;
    entry["model"] = model.table.model;
    entry["tensors"] = model.table.size();
    entry["bytes"] = model.table.bytes();
    entry["compute_ms"] = Ms(model.table.forward_seconds() + model.table.backward_seconds());
    entry["costs"] = ordered_json::parse(ToJson(model.costs, workers));
    entry["schedules"] = ordered_json::array();
    const ReplayedSchedule& ours = Ours(model);
    for (const ReplayedSchedule& row : model.schedules) {
      ordered_json rounds = ordered_json::array();
      for (const double seconds : row.rounds) rounds.push_back(Ms(seconds));
      entry["schedules"].push_back(
          {{"schedule", row.name},
           {"transfers", row.transfers},
           {"at_once_max", row.at_once_max},
           {"predicted_ms", Ms(row.predicted_seconds)},
           {"measured_ms", Ms(row.measured_seconds)},
           {"rounds_ms", rounds},
           {"cores_busy", row.cores_busy ? ordered_json(*row.cores_busy) : ordered_json(nullptr)},
           {"off", row.Off()},
           {"predicted_over_" + ours.name, row.predicted_seconds / ours.predicted_seconds},
           {"measured_over_" + ours.name, ToJson(SpeedUpOf(ours, row))},
           {"last_round", ordered_json::parse(observe::ToJson(row.summary))}});
    }
    json["models"].push_back(std::move(entry));
  }
  return json.dump(2) + "\n";
}

}  // namespace syncopate::tools
