#include "observe/summary.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/figures.h"
#include "base/limits.h"
#include "base/parse.h"
#include "base/status.h"
#include "nlohmann/json.hpp"
#include "observe/text_table.h"

namespace syncopate::observe {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kSummaryPartsMax = 1 << 16;  // of a run, in its summary

// The keys of the parts, in summary.json and in this order.
constexpr std::pair<const char*, double WallTime::*> kWallKeys[] = {
    {"start", &WallTime::start},
    {"iterations", &WallTime::iterations},
    {"measuring", &WallTime::measuring},
    {"evaluation", &WallTime::evaluation},
    {"checkpoints", &WallTime::checkpoints},
    {"end", &WallTime::end},
    {"earlier", &WallTime::earlier}};
constexpr std::pair<const char*, double IterationParts::*> kPartKeys[] = {
    {"compute", &IterationParts::compute},
    {"pack", &IterationParts::pack},
    {"network", &IterationParts::network},
    {"waiting", &IterationParts::waiting},
    {"other", &IterationParts::other}};

template <typename Costs>
IterationParts PartsOfCosts(const Costs& costs) {
  return {.compute = costs.compute.mean * 1e3,
          .pack = costs.pack.mean * 1e3,
          .network = std::max(0.0, costs.exposed.mean - costs.waiting.mean) * 1e3,
          .waiting = costs.waiting.mean * 1e3,
          .other = costs.other.mean * 1e3};
}

Json OrNull(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? Json(*value) : Json();
}

void Read(const Json& json, const char* key, std::optional<double>* value) {
  const auto found = json.find(key);
  if (found != json.end() && found->is_number()) *value = found->get<double>();
}

template <typename Parts, size_t kCount>
Json PartsToJson(const std::optional<Parts>& parts,
                 const std::pair<const char*, double Parts::*> (&keys)[kCount]) {
  if (!parts) return Json();
  Json json;
  for (const auto& [key, field] : keys) json[key] = OrNull(*parts.*field);
  return json;
}

template <typename Parts, size_t kCount>
void ReadParts(const Json& json, const char* name,
               const std::pair<const char*, double Parts::*> (&keys)[kCount],
               std::optional<Parts>* parts) {
  const auto found = json.find(name);
  if (found == json.end() || !found->is_object()) return;
  parts->emplace();
  for (const auto& [key, field] : keys) {
    std::optional<double> value;
    Read(*found, key, &value);
    (**parts).*field = value.value_or(0);
  }
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
  return value ? absl::StrCat(Fixed(*value, digits), unit) : "-";
}

std::string Shown(const std::optional<bool>& value) { return !value ? "-" : *value ? "yes" : "no"; }

std::string ShownPercent(const std::optional<double>& value) {
  return value ? Percent(*value) : "-";
}

template <typename Parts, size_t kCount>
std::vector<double> ValuesOf(const Parts& parts,
                             const std::pair<const char*, double Parts::*> (&keys)[kCount]) {
  std::vector<double> values;
  for (const auto& [key, field] : keys) values.push_back(parts.*field);
  return values;
}

// The whole and below it a line for each part that is not nothing.
void AddParts(absl::string_view title, const NamedParts& parts, absl::string_view unit,
              std::string* text) {
  std::vector<double> values;
  for (const auto& [name, value] : parts) values.push_back(value);
  const std::vector<std::string> figures = WholeAndParts(values, kTimeDigits);
  absl::StrAppendFormat(text, "  %-26s%s %s\n", title, figures[0], unit);
  for (size_t i = 0; i < parts.size(); ++i) {
    absl::StrAppendFormat(text, "    %-24s%*s %s\n", parts[i].first, figures[0].size(),
                          figures[i + 1], unit);
  }
}

}  // namespace

IterationParts PartsOf(const Breakdown& breakdown) { return PartsOfCosts(breakdown); }
IterationParts PartsOf(const WorkerCost& worker) { return PartsOfCosts(worker); }

std::vector<std::string> FiguresOf(const IterationParts& parts) {
  return WholeAndParts(ValuesOf(parts, kPartKeys), kTimeDigits);
}

// What did not happen is left out: a run without checkpoints, one that was never resumed.
NamedParts NamedWall(const Summary& summary) {
  if (!summary.wall) return {};
  const WallTime& wall = *summary.wall;
  const int64_t iterations =
      summary.resumed_at.empty() ? summary.iterations : PartIterations(summary);
  NamedParts parts = {{"start", wall.start},
                      {CountOf(static_cast<uint64_t>(iterations), "iteration"), wall.iterations}};
  if (wall.measuring > 0) parts.emplace_back("measuring", wall.measuring);
  if (wall.evaluation > 0) parts.emplace_back("evaluation", wall.evaluation);
  if (wall.checkpoints > 0) parts.emplace_back("checkpoints", wall.checkpoints);
  parts.emplace_back("end", wall.end);
  if (wall.earlier > 0) parts.emplace_back("before it was resumed", wall.earlier);
  return parts;
}

NamedParts Named(const IterationParts& parts) {
  return {{"compute", parts.compute},
          {"pack", parts.pack},
          {"network", parts.network},
          {"waiting for workers", parts.waiting},
          {"other (framework)", parts.other}};
}

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
  summary->mean_ms = PartsOf(breakdown);
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
  json["cores_busy"] = OrNull(summary.cores_busy);
  if (summary.samples_repeated) json["samples_repeated"] = *summary.samples_repeated;
  json["mean_ms"] = PartsToJson(summary.mean_ms, kPartKeys);
  json["wall_seconds"] = PartsToJson(summary.wall, kWallKeys);
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
      if (each.is_number_unsigned() && summary.resumed_at.size() < kSummaryPartsMax) {
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
  Read(json, "cores_busy", &summary.cores_busy);
  if (json.contains("samples_repeated")) {
    ReadCount(json, "samples_repeated", UINT64_MAX, &summary.samples_repeated.emplace());
  }
  ReadParts(json, "mean_ms", kPartKeys, &summary.mean_ms);
  ReadParts(json, "wall_seconds", kWallKeys, &summary.wall);
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
  add("iterations", absl::StrCat(summary.iterations));
  if (!summary.resumed_at.empty()) {
    add("resumed at", absl::StrFormat("%s; since then %d iterations in %.1f s",
                                      absl::StrJoin(summary.resumed_at, ", "),
                                      PartIterations(summary), summary.part_seconds));
  }
  if (summary.reached) add("target reached", Shown(summary.reached));
  if (summary.accuracy) add("accuracy", ShownPercent(summary.accuracy));
  if (summary.loss) add("loss", Shown(summary.loss, 4));
  if (summary.wall) {
    AddParts("wall time", NamedWall(summary), "s", &text);
  } else {
    add("wall time", Shown(summary.seconds, kTimeDigits, " s"));
  }
  if (summary.iteration_ms_p50) {
    add("an iteration, median", Shown(summary.iteration_ms_p50, kTimeDigits, " ms"));
  }
  if (summary.mean_ms) AddParts("an iteration, mean", Named(*summary.mean_ms), "ms", &text);
  add("sent by all workers", FormatBytes(summary.bytes_sent));
  if (summary.cores_busy) add("cores busy", ShownPercent(summary.cores_busy));
  if (summary.samples_repeated) {
    add("samples computed twice", absl::StrCat(*summary.samples_repeated));
  }
  return text;
}

RunTable RunsTable(const std::vector<std::string>& names, const std::vector<Summary>& summaries) {
  RunTable table{{"run", "strategy", "schedule", "workers", "iterations", "wall s", "accuracy",
                  "loss", "sent"},
                 {}};
  for (size_t i = 0; i < names.size(); ++i) {
    const Summary& each = summaries[i];
    table.rows.push_back({names[i], each.strategy.empty() ? "-" : each.strategy,
                          each.schedule.empty() ? "-" : each.schedule, absl::StrCat(each.workers),
                          absl::StrCat(each.iterations), Shown(each.seconds, kTimeDigits),
                          ShownPercent(each.accuracy), Shown(each.loss, 4),
                          FormatBytes(each.bytes_sent)});
  }
  return table;
}

RunTable WallTable(const std::vector<std::string>& names, const std::vector<Summary>& summaries) {
  // Columns that are 0 for all runs would only take room.
  std::vector<bool> shown(std::size(kWallKeys));
  for (const Summary& each : summaries) {
    if (!each.wall) continue;
    const std::vector<double> values = ValuesOf(*each.wall, kWallKeys);
    for (size_t i = 0; i < values.size(); ++i) shown[i] = shown[i] || values[i] > 0;
  }
  RunTable table{{"run", "wall s"}, {}};
  for (size_t i = 0; i < shown.size(); ++i) {
    if (shown[i]) table.titles.emplace_back(kWallKeys[i].first);
  }
  if (table.titles.size() == 2) return {};
  for (size_t r = 0; r < names.size(); ++r) {
    std::vector<std::string>& row = table.rows.emplace_back(1, names[r]);
    if (!summaries[r].wall) {
      row.resize(table.titles.size(), "-");
      continue;
    }
    const std::vector<std::string> figures =
        WholeAndParts(ValuesOf(*summaries[r].wall, kWallKeys), kTimeDigits);
    row.push_back(figures[0]);
    for (size_t i = 0; i < shown.size(); ++i) {
      if (shown[i]) row.push_back(figures[i + 1]);
    }
  }
  return table;
}

RunTable PartsTable(const std::vector<std::string>& names, const std::vector<Summary>& summaries) {
  RunTable table{
      {"run", "iteration ms", "compute", "pack", "network", "waiting", "other", "median iteration"},
      {}};
  for (size_t r = 0; r < names.size(); ++r) {
    const Summary& each = summaries[r];
    std::vector<std::string>& row = table.rows.emplace_back(1, names[r]);
    if (each.mean_ms) {
      for (std::string& figure : FiguresOf(*each.mean_ms)) {
        row.push_back(std::move(figure));
      }
    }
    row.resize(table.titles.size() - 1, "-");
    row.push_back(Shown(each.iteration_ms_p50, kTimeDigits));
  }
  return table;
}

std::string ToComparison(const std::vector<std::string>& names,
                         const std::vector<Summary>& summaries) {
  std::string text;
  const auto add = [&](absl::string_view title, RunTable table, size_t left) {
    if (table.rows.empty()) return;
    for (size_t i = 0; i < left; ++i) table.titles[i] = absl::StrCat("<", table.titles[i]);
    TextTable lines(table.titles);
    for (std::vector<std::string>& row : table.rows) lines.Add(std::move(row));
    absl::StrAppend(&text, title, lines.ToString());
  };
  add("", RunsTable(names, summaries), 3);
  add("\nwhere the wall time went, in s\n", WallTable(names, summaries), 1);
  add("\nwhere the time of an iteration went, in ms (means, which add up)\n",
      PartsTable(names, summaries), 1);
  return text;
}

}  // namespace syncopate::observe
