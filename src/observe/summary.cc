#include "observe/summary.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/limits.h"
#include "base/parse.h"
#include "base/status.h"
#include "nlohmann/json.hpp"
#include "observe/text_table.h"

namespace syncopate::observe {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kPartsMax = 1 << 16;  // of a run, in its summary

Json OrNull(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? Json(*value) : Json();
}

void Read(const Json& json, const char* key, std::optional<double>* value) {
  const auto found = json.find(key);
  if (found != json.end() && found->is_number()) *value = found->get<double>();
}

template <typename Count>
void ReadCount(const Json& json, const char* key, Count max, Count* value) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_number_unsigned()) return;
  *value =
      static_cast<Count>(std::min<uint64_t>(found->get<uint64_t>(), static_cast<uint64_t>(max)));
}

void Read(const Json& json, const char* key, std::string* value) {
  constexpr size_t kNameBytesMax = 256;
  const auto found = json.find(key);
  if (found != json.end() && found->is_string()) {
    *value = found->get<std::string>().substr(0, kNameBytesMax);
  }
}

// How many iterations the last part of a run that was resumed has done.
int64_t PartIterations(const Summary& summary) {
  return std::max<int64_t>(0, summary.iterations - summary.resumed_at.back());
}

std::string Shown(const std::optional<double>& value, int digits, absl::string_view unit = "") {
  return value ? absl::StrFormat("%.*f%s", digits, *value, unit) : "-";
}

std::string Shown(const std::optional<bool>& value) { return !value ? "-" : *value ? "yes" : "no"; }

std::string ShownPercent(const std::optional<double>& value) {
  return value ? Percent(*value) : "-";
}

}  // namespace

void SetParts(const std::vector<Metric>& metrics, Summary* summary) {
  summary->resumed_at = ResumedAt(metrics);
  for (const Metric& metric : metrics) {
    if (metric.Value("resumed_at")) summary->part_seconds = summary->seconds - metric.seconds;
  }
}

void SetCosts(const Breakdown& breakdown, Summary* summary) {
  summary->bytes_sent = breakdown.bytes;
  if (breakdown.iterations.empty()) return;
  summary->iteration_ms_p50 = breakdown.seconds.p50 * 1e3;
  summary->compute_ms_p50 = breakdown.compute.p50 * 1e3;
  summary->exposed_comm_ms_p50 = breakdown.exposed.p50 * 1e3;
  summary->waiting_ms_p50 = breakdown.waiting.p50 * 1e3;
}

std::string ToJson(const Summary& summary) {
  Json json;
  json["strategy"] = summary.strategy;
  json["schedule"] = summary.schedule;
  json["workers"] = summary.workers;
  json["iterations"] = summary.iterations;
  json["seconds"] = OrNull(summary.seconds);
  if (!summary.resumed_at.empty()) {
    json["resumed_at"] = summary.resumed_at;
    json["part_iterations"] = PartIterations(summary);
    json["part_seconds"] = OrNull(summary.part_seconds);
  }
  json["reached"] = summary.reached ? Json(*summary.reached) : Json();
  json["accuracy"] = OrNull(summary.accuracy);
  json["loss"] = OrNull(summary.loss);
  json["iteration_ms_p50"] = OrNull(summary.iteration_ms_p50);
  json["compute_ms_p50"] = OrNull(summary.compute_ms_p50);
  json["exposed_comm_ms_p50"] = OrNull(summary.exposed_comm_ms_p50);
  json["waiting_ms_p50"] = OrNull(summary.waiting_ms_p50);
  json["bytes_sent"] = summary.bytes_sent;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string ToJson(const Summary& summary, const std::string& run_path) {
  Json json = Json::parse(ToJson(summary));
  json["run"] = run_path;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

absl::StatusOr<Summary> ParseSummary(absl::string_view text) {
  const Json json = Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return absl::InvalidArgumentError("the summary is not a JSON object");
  Summary summary;
  std::optional<double> seconds;
  Read(json, "strategy", &summary.strategy);
  Read(json, "schedule", &summary.schedule);
  ReadCount(json, "workers", limits::kWorkersMax, &summary.workers);
  ReadCount(json, "iterations", INT64_MAX, &summary.iterations);
  Read(json, "seconds", &seconds);
  summary.seconds = seconds.value_or(0);
  if (const auto found = json.find("resumed_at"); found != json.end() && found->is_array()) {
    for (const Json& each : *found) {
      if (each.is_number_unsigned() && summary.resumed_at.size() < kPartsMax) {
        summary.resumed_at.push_back(each.get<int64_t>());
      }
    }
  }
  std::optional<double> part_seconds;
  Read(json, "part_seconds", &part_seconds);
  summary.part_seconds = part_seconds.value_or(0);
  if (const auto found = json.find("reached"); found != json.end() && found->is_boolean()) {
    summary.reached = found->get<bool>();
  }
  Read(json, "accuracy", &summary.accuracy);
  Read(json, "loss", &summary.loss);
  Read(json, "iteration_ms_p50", &summary.iteration_ms_p50);
  Read(json, "compute_ms_p50", &summary.compute_ms_p50);
  Read(json, "exposed_comm_ms_p50", &summary.exposed_comm_ms_p50);
  Read(json, "waiting_ms_p50", &summary.waiting_ms_p50);
  ReadCount(json, "bytes_sent", UINT64_MAX, &summary.bytes_sent);
  return summary;
}

std::string ToTable(const Summary& summary) {
  std::string text;
  const auto add = [&](absl::string_view name, absl::string_view value) {
    absl::StrAppendFormat(&text, "  %-26s%s\n", name, value);
  };
  add("strategy", summary.strategy.empty() ? "-" : summary.strategy);
  add("schedule", summary.schedule.empty() ? "-" : summary.schedule);
  add("workers", absl::StrCat(summary.workers));
  add("iterations", absl::StrFormat("%d in %.1f s", summary.iterations, summary.seconds));
  if (!summary.resumed_at.empty()) {
    add("resumed at", absl::StrFormat("%s; since then %d iterations in %.1f s",
                                      absl::StrJoin(summary.resumed_at, ", "),
                                      PartIterations(summary), summary.part_seconds));
  }
  if (summary.reached) add("target reached", Shown(summary.reached));
  if (summary.accuracy) add("accuracy", ShownPercent(summary.accuracy));
  if (summary.loss) add("loss", Shown(summary.loss, 4));
  if (summary.iteration_ms_p50) {
    add("an iteration, median", Shown(summary.iteration_ms_p50, 2, " ms"));
    add("  compute", Shown(summary.compute_ms_p50, 2, " ms"));
    add("  exposed communication", Shown(summary.exposed_comm_ms_p50, 2, " ms"));
    add("    waiting for workers", Shown(summary.waiting_ms_p50, 2, " ms"));
  }
  add("sent by all workers", FormatBytes(summary.bytes_sent));
  return text;
}

std::string ToComparison(const std::vector<std::string>& names,
                         const std::vector<Summary>& summaries) {
  TextTable table({"<run", "<strategy", "<schedule", "workers", "iterations", "seconds", "accuracy",
                   "loss", "iteration ms", "compute", "exposed", "waiting", "sent"});
  for (size_t i = 0; i < summaries.size() && i < names.size(); ++i) {
    const Summary& each = summaries[i];
    table.Add({names[i], each.strategy.empty() ? "-" : each.strategy,
               each.schedule.empty() ? "-" : each.schedule, absl::StrCat(each.workers),
               absl::StrCat(each.iterations), absl::StrFormat("%.1f", each.seconds),
               ShownPercent(each.accuracy), Shown(each.loss, 4), Shown(each.iteration_ms_p50, 2),
               Shown(each.compute_ms_p50, 2), Shown(each.exposed_comm_ms_p50, 2),
               Shown(each.waiting_ms_p50, 2), FormatBytes(each.bytes_sent)});
  }
  return table.ToString();
}

}  // namespace syncopate::observe
