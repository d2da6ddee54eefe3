#include "observe/text_report.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/figures.h"
#include "base/parse.h"
#include "nlohmann/json.hpp"
#include "observe/text_table.h"

namespace syncopate::observe {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kTextCourseRows = 12;
constexpr size_t kLateRows = 8;

template <typename Costs>
std::vector<std::string> TextCostRow(std::string rank, std::string host, const Costs& costs) {
  std::vector<std::string> row = {std::move(rank), std::move(host)};
  for (std::string& figure : FiguresOf(PartsOf(costs))) row.push_back(std::move(figure));
  row.insert(row.end(), {Milliseconds(costs.seconds.p50), Milliseconds(costs.seconds.p99),
                         FormatBytes(costs.bytes)});
  return row;
}

std::string CostTable(const Breakdown& breakdown) {
  TextTable table({"rank", "<host", "iteration", "compute", "pack", "network", "waiting", "other",
                   "median", "99 %", "sent"});
  for (const WorkerCost& worker : breakdown.workers) {
    table.Add(TextCostRow(absl::StrCat(worker.rank), worker.host, worker));
  }
  if (breakdown.workers.size() > 1) table.Add(TextCostRow("all", "", breakdown));
  return table.ToString();
}

std::string LateTable(const Breakdown& breakdown) {
  TextTable table({"rank", "<host", "late in", "by, median ms", "in all, s"});
  for (size_t i = 0; i < std::min(breakdown.late.size(), kLateRows); ++i) {
    const Lateness& late = breakdown.late[i];
    table.Add({absl::StrCat(late.rank), late.host, absl::StrFormat("%.0f %%", late.share * 100),
               Milliseconds(late.p50), absl::StrFormat("%.3f", late.total)});
  }
  return table.ToString();
}

std::string ShownNumber(const std::optional<double>& value, int digits) {
  return value ? Fixed(*value, digits) : "-";
}

std::string CourseTable(const std::vector<Metric>& metrics) {
  TextTable table({"iteration", "seconds", "<of", "loss", "accuracy"});
  for (const Metric* metric : CourseOf(metrics, kTextCourseRows)) {
    const auto accuracy = metric->Value("accuracy");
    table.Add({absl::StrCat(metric->iteration), absl::StrFormat("%.1f", metric->seconds),
               metric->kind, ShownNumber(metric->Value("loss"), 4),
               accuracy ? Percent(*accuracy) : "-"});
  }
  return table.ToString();
}

std::string NotesOf(const RunRecord& run) {
  std::string text;
  for (const std::string& note : run.notes) absl::StrAppend(&text, "  note: ", note, "\n");
  return text;
}

Json ToJson(const Spread& spread) {
  return {{"p50", spread.p50 * 1e3}, {"p99", spread.p99 * 1e3}, {"mean", spread.mean * 1e3}};
}

template <typename Costs>
Json CostsToJson(const Costs& costs) {
  Json json;
  json["iteration_ms"] = ToJson(costs.seconds);
  json["compute_ms"] = ToJson(costs.compute);
  json["pack_ms"] = ToJson(costs.pack);
  json["exposed_comm_ms"] = ToJson(costs.exposed);
  json["waiting_ms"] = ToJson(costs.waiting);
  json["other_ms"] = ToJson(costs.other);
  json["bytes_sent"] = costs.bytes;
  return json;
}

Json RunToJson(const RunRecord& run) {
  Json json;
  json["name"] = run.name;
  json["ended"] = run.ended;
  json.update(Json::parse(ToJson(run.summary)));
  Json& breakdown = json["breakdown"] = CostsToJson(run.breakdown);
  breakdown["workers"] = Json::array();
  for (const WorkerCost& worker : run.breakdown.workers) {
    Json each;
    each["rank"] = worker.rank;
    each["host"] = worker.host;
    each["iterations"] = worker.iterations;
    each.update(CostsToJson(worker));
    breakdown["workers"].push_back(std::move(each));
  }
  json["late"] = Json::array();
  for (const Lateness& late : run.breakdown.late) {
    json["late"].push_back({{"rank", late.rank},
                            {"host", late.host},
                            {"share", late.share},
                            {"ms_p50", late.p50 * 1e3},
                            {"seconds", late.total}});
  }
  json["notes"] = run.notes;
  return json;
}

}  // namespace

std::string WhoIsLate(const Breakdown& breakdown) {
  if (breakdown.workers.size() < 2) return "there is only one worker to look at";
  if (breakdown.late.empty())
    return "nobody: no worker kept others waiting for 1 % of an iteration";
  const Lateness& late = breakdown.late[0];
  return absl::StrFormat(
      "rank %d on %s kept others waiting in %.0f %% of the iterations, by %s ms (median)",
      late.rank, late.host, late.share * 100, Milliseconds(late.p50));
}

std::vector<const Metric*> CourseOf(const std::vector<Metric>& metrics, size_t count) {
  std::vector<const Metric*> evaluations, all;
  for (const Metric& metric : metrics) {
    if (!metric.Value("loss") && !metric.Value("accuracy")) continue;
    all.push_back(&metric);
    if (metric.kind == "evaluate") evaluations.push_back(&metric);
  }
  const std::vector<const Metric*>& from = evaluations.size() > 1 ? evaluations : all;
  if (from.size() <= count) return from;
  std::vector<const Metric*> chosen;
  for (size_t i = 1; i <= count; ++i) chosen.push_back(from[i * from.size() / count - 1]);
  return chosen;
}

std::string ToText(const RunRecord& run) {
  std::string text =
      absl::StrCat("run ", run.name, run.ended ? "" : " (not ended)", "\n", ToTable(run.summary));
  const Breakdown& breakdown = run.breakdown;
  if (!breakdown.iterations.empty()) {
    absl::StrAppend(&text, "\nwhere the time of an iteration went, in ms (means of ",
                    CountOf(breakdown.iterations.size(), "iteration"), " of ",
                    CountOf(breakdown.workers.size(), "worker"), ", which add up)\n",
                    CostTable(breakdown));
    absl::StrAppend(&text, "\nwho is late? ", WhoIsLate(breakdown), "\n");
    if (breakdown.late.size() > 1) absl::StrAppend(&text, LateTable(breakdown));
  }
  if (!CourseOf(run.metrics, 1).empty()) {
    absl::StrAppend(&text, "\nhow it went\n", CourseTable(run.metrics));
  }
  const std::string notes = NotesOf(run);
  return absl::StrCat(text, notes.empty() ? "" : "\n", notes);
}

std::string ToComparison(const std::vector<RunRecord>& runs) {
  std::vector<std::string> names;
  std::vector<Summary> summaries;
  for (const RunRecord& run : runs) {
    names.push_back(run.name);
    summaries.push_back(run.summary);
  }
  std::string text = ToComparison(names, summaries);
  for (const RunRecord& run : runs) {
    absl::StrAppend(&text, "\n", run.name, ": who is late? ", WhoIsLate(run.breakdown), "\n",
                    NotesOf(run));
  }
  return text;
}

std::string ToJson(const std::vector<RunRecord>& runs) {
  Json json;
  json["runs"] = Json::array();
  for (const RunRecord& run : runs) json["runs"].push_back(RunToJson(run));
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace syncopate::observe
