#include "observe/html_report.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/parse.h"
#include "base/xml.h"
#include "nlohmann/json.hpp"
#include "observe/html_style.h"
#include "observe/text_report.h"
#include "observe/text_table.h"
#include "observe/timeline_picture.h"
#include "picture/charts.h"

namespace syncopate::observe {
namespace {

using picture::Histogram;
using picture::Ink;
using picture::LineChart;
using picture::StackedBars;

constexpr size_t kRowsMax = 64;  // of a plot of workers
constexpr size_t kCourseRows = 40;
constexpr const char* kColours[] = {"c-compute", "c-network", "c-update",
                                    "c-pack",    "c-waiting", "c-load"};

const std::vector<std::pair<std::string, Ink>> kParts = {
    {"compute", Ink::Class("c-compute")},     {"pack", Ink::Class("c-pack")},
    {"network", Ink::Class("c-network")},     {"waiting", Ink::Class("c-waiting")},
    {"measuring", Ink::Class("c-measuring")}, {"other (framework)", Ink::Class("c-other")}};

// EscapeXml() for text of several lines.
std::string EscapeXmlLines(absl::string_view text) {
  std::vector<std::string> lines;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) lines.push_back(EscapeXml(line));
  return absl::StrJoin(lines, "\n");
}

// Milliseconds of the means, which add up to the iteration.
template <typename Costs>
std::vector<double> PartsOf(const Costs& costs) {
  return {costs.compute.mean * 1e3,
          costs.pack.mean * 1e3,
          (costs.exposed.mean - costs.waiting.mean) * 1e3,
          costs.waiting.mean * 1e3,
          costs.measuring.mean * 1e3,
          costs.other.mean * 1e3};
}

std::string Table(absl::string_view caption, const std::vector<std::string>& titles,
                  const std::vector<std::vector<std::string>>& rows) {
  std::string text = absl::StrCat("<table><caption>", EscapeXml(caption), "</caption><thead><tr>");
  for (const std::string& title : titles) {
    absl::StrAppend(&text, "<th scope='col'>", EscapeXml(title), "</th>");
  }
  absl::StrAppend(&text, "</tr></thead><tbody>\n");
  for (const auto& row : rows) {
    absl::StrAppend(&text, "<tr>");
    for (const std::string& cell : row) absl::StrAppend(&text, "<td>", EscapeXml(cell), "</td>");
    absl::StrAppend(&text, "</tr>\n");
  }
  return absl::StrCat(text, "</tbody></table>\n");
}

// A table that is shown when asked for; it can be scrolled by keyboard.
std::string Folded(absl::string_view summary, const std::string& contents) {
  return absl::StrCat("<details><summary>", EscapeXml(summary),
                      "</summary><div class='wide' tabindex='0' role='region' aria-label='",
                      EscapeXml(summary), "'>\n", contents, "</div></details>\n");
}

std::string Figure(const std::string& svg, absl::string_view caption, bool wide) {
  if (svg.empty()) return "";
  const std::string picture =
      wide ? absl::StrCat(
                 "<div class='wide' tabindex='0' role='region' aria-label='Plot, scrolls "
                 "sideways'>\n",
                 svg, "</div>")
           : svg;
  return absl::StrCat("<figure>", picture, "<figcaption>", EscapeXml(caption),
                      "</figcaption></figure>\n");
}

std::string Section(absl::string_view title, const std::string& contents) {
  return absl::StrCat("<section><h2>", EscapeXml(title), "</h2>\n", contents, "</section>\n");
}

std::string Shown(const std::optional<double>& value, int digits, absl::string_view unit = "") {
  return value ? absl::StrFormat("%.*f%s", digits, *value, unit) : "-";
}

std::string Tiles(const Summary& summary) {
  std::string text = "<dl class='tiles'>\n";
  const auto add = [&](absl::string_view name, absl::string_view value, absl::string_view more) {
    absl::StrAppend(&text, "<div><dt>", EscapeXml(name), "</dt><dd>", EscapeXml(value));
    if (!more.empty()) absl::StrAppend(&text, "<small>", EscapeXml(more), "</small>");
    absl::StrAppend(&text, "</dd></div>\n");
  };
  add("Iterations", absl::StrCat(summary.iterations),
      absl::StrFormat("in %.1f s", summary.seconds));
  if (summary.accuracy) {
    add("Accuracy", Percent(*summary.accuracy),
        !summary.reached   ? ""
        : *summary.reached ? "target reached"
                           : "target not reached");
  }
  if (summary.loss) add("Loss", Shown(summary.loss, 4), "");
  if (summary.iteration_ms_p50) {
    add("Iteration", Shown(summary.iteration_ms_p50, 2, " ms"), "median");
    add("Compute", Shown(summary.compute_ms_p50, 2, " ms"), "median");
    add("Exposed communication", Shown(summary.exposed_comm_ms_p50, 2, " ms"), "median");
    add("Waiting for workers", Shown(summary.waiting_ms_p50, 2, " ms"), "part of exposed, median");
  }
  add("Sent", FormatBytes(summary.bytes_sent), "by all workers");
  return absl::StrCat(text, "</dl>\n");
}

std::string Notes(const RunRecord& run) {
  if (run.notes.empty()) return "";
  std::string text = "<section class='note'><h2>To know</h2><ul>\n";
  for (const std::string& note : run.notes) {
    absl::StrAppend(&text, "<li>", EscapeXml(note), "</li>\n");
  }
  return absl::StrCat(text, "</ul></section>\n");
}

std::string WhereTimeWent(const Breakdown& breakdown) {
  if (breakdown.iterations.empty()) return "";
  StackedBars bars;
  bars.unit = "ms an iteration";
  bars.parts = kParts;
  std::vector<std::vector<std::string>> rows;
  for (const WorkerCost& worker : breakdown.workers) {
    const std::string name = absl::StrCat("rank ", worker.rank, " ", worker.host);
    if (bars.rows.size() < kRowsMax) bars.rows.push_back({name.substr(0, 40), PartsOf(worker)});
    rows.push_back({name, Milliseconds(worker.seconds.mean), Milliseconds(worker.compute.mean),
                    Milliseconds(worker.pack.mean),
                    Milliseconds(worker.exposed.mean - worker.waiting.mean),
                    Milliseconds(worker.waiting.mean), Milliseconds(worker.measuring.mean),
                    Milliseconds(worker.other.mean), Milliseconds(worker.seconds.p50),
                    Milliseconds(worker.seconds.p99), FormatBytes(worker.bytes)});
  }
  const double whole = std::max(breakdown.seconds.mean, 1e-12);
  const std::string sentence = absl::StrFormat(
      "Of an iteration of %.2f ms, %.0f %% were compute, %.0f %% waiting for the network and %.0f "
      "%% "
      "waiting for late workers.",
      breakdown.seconds.mean * 1e3, 100 * breakdown.compute.mean / whole,
      100 * (breakdown.exposed.mean - breakdown.waiting.mean) / whole,
      100 * breakdown.waiting.mean / whole);
  bars.label = absl::StrCat("Bars of where the time of each worker went. ", sentence);
  std::string caption =
      "Mean of all iterations. Network and waiting together are the exposed "
      "communication: the training thread could not go on.";
  if (breakdown.workers.size() > kRowsMax) {
    absl::StrAppend(&caption, " The first ", kRowsMax, " of ", breakdown.workers.size(),
                    " workers; all are in the table.");
  }
  return Section(
      "Where the time went",
      absl::StrCat("<p class='strong'>", EscapeXml(sentence), "</p>",
                   Figure(Draw(bars), caption, true),
                   Folded("Numbers of where the time went",
                          Table("Mean milliseconds of an iteration",
                                {"worker", "iteration", "compute", "pack", "network", "waiting",
                                 "measuring", "other", "iteration p50", "iteration p99", "sent"},
                                rows))));
}

std::string WhoWasLate(const Breakdown& breakdown) {
  if (breakdown.iterations.empty() || breakdown.workers.size() < 2) return "";
  std::string text = absl::StrCat("<p class='strong'>", EscapeXml(WhoIsLate(breakdown)), ".</p>\n");
  if (!breakdown.late.empty()) {
    StackedBars bars;
    bars.unit = "seconds that others waited for it, in all";
    bars.parts = {{"waited for", Ink::Class("c-waiting")}};
    bars.label =
        absl::StrCat("Bars of how long others waited for each worker. ", WhoIsLate(breakdown));
    std::vector<std::vector<std::string>> rows;
    for (const Lateness& late : breakdown.late) {
      const std::string name = absl::StrCat("rank ", late.rank, " ", late.host);
      if (bars.rows.size() < 16) bars.rows.push_back({name.substr(0, 40), {late.total}});
      rows.push_back({name, absl::StrFormat("%.0f %%", late.share * 100), Milliseconds(late.p50),
                      absl::StrFormat("%.3f", late.total)});
    }
    absl::StrAppend(
        &text,
        Figure(Draw(bars),
               "A transfer moves only when its last participant has started it. Counted for each "
               "iteration: the longest time that any worker waited for this one.",
               true),
        Folded("Numbers of who is late",
               Table("Who kept others waiting",
                     {"worker", "share of iterations", "by, median ms", "in all, s"}, rows)));
  }
  return Section("Who is late?", text);
}

std::string Timeline(const RunRecord& run) {
  const TimelinePicture picture = DrawTimeline(run.traces, run.breakdown);
  if (picture.svg.empty()) return "";
  std::string caption = absl::StrCat(
      picture.iterations == 1 ? "Iteration " : "Iterations ", picture.first_iteration,
      picture.iterations == 1 ? "" : absl::StrCat(" and ", picture.first_iteration + 1),
      ", on rank 0's clock. The upper row of a worker is its training thread, those below are its "
      "transfers. timeline.json has all iterations, for Perfetto or chrome://tracing.");
  if (picture.workers_shown < run.traces.size()) {
    absl::StrAppend(&caption, " The first ", picture.workers_shown, " of ", run.traces.size(),
                    " workers.");
  }
  std::vector<std::vector<std::string>> rows;
  for (const IterationCost& cost : run.breakdown.iterations) {
    if (cost.iteration != picture.first_iteration &&
        cost.iteration != picture.first_iteration + 1) {
      continue;
    }
    std::string late;
    for (const auto& [rank, seconds] : cost.late) {
      absl::StrAppend(&late, late.empty() ? "" : ", ", "rank ", rank, ": ", Milliseconds(seconds));
    }
    rows.push_back({absl::StrCat(cost.iteration), absl::StrCat("rank ", cost.rank),
                    Milliseconds(cost.seconds), Milliseconds(cost.compute),
                    Milliseconds(cost.exposed), late.empty() ? "-" : late});
  }
  return Section("A closer look", absl::StrCat(Figure(picture.svg, caption, true),
                                               Folded("Numbers of these iterations",
                                                      Table("Milliseconds",
                                                            {"iteration", "worker", "in all",
                                                             "compute", "exposed", "waited for"},
                                                            rows))));
}

std::vector<std::pair<double, double>> Points(const std::vector<Metric>& metrics,
                                              absl::string_view kind, absl::string_view value,
                                              bool over_time, double factor) {
  std::vector<std::pair<double, double>> points;
  for (const Metric& metric : metrics) {
    const std::optional<double> y = metric.Value(value);
    if (metric.kind != kind || !y) continue;
    points.emplace_back(over_time ? metric.seconds : static_cast<double>(metric.iteration),
                        *y * factor);
  }
  return points;
}

// Loss and accuracy over iterations and over time, of one run or of several.
std::string Course(const std::vector<RunRecord>& runs) {
  std::string plots;
  for (const bool accuracy : {false, true}) {
    for (const bool over_time : {false, true}) {
      LineChart chart;
      chart.x_label = over_time ? "seconds" : "iterations";
      chart.y_label = accuracy ? "accuracy, %" : "loss";
      chart.from_zero = !accuracy;
      if (accuracy) chart.y_max = 100;
      chart.label = absl::StrCat(accuracy ? "Accuracy" : "Loss", " over ", chart.x_label,
                                 "; the table below has the numbers");
      for (size_t i = 0; i < runs.size(); ++i) {
        const Ink ink = Ink::Class(kColours[i % std::size(kColours)]);
        const std::string prefix = runs.size() == 1 ? "" : absl::StrCat(runs[i].name, ", ");
        const char* value = accuracy ? "accuracy" : "loss";
        const double factor = accuracy ? 100 : 1;
        const auto training = Points(runs[i].metrics, "train", value, over_time, factor);
        const auto evaluated = Points(runs[i].metrics, "evaluate", value, over_time, factor);
        if (runs.size() == 1 || evaluated.empty()) {
          chart.series.push_back({prefix + "training", ink, training, false});
        }
        chart.series.push_back({prefix + "evaluation",
                                runs.size() == 1 ? Ink::Class("c-network") : ink, evaluated,
                                evaluated.size() <= 60});
      }
      absl::StrAppend(
          &plots, Figure(Draw(chart),
                         absl::StrCat(accuracy ? "Accuracy" : "Loss", " over ", chart.x_label, "."),
                         false));
    }
  }
  if (plots.empty()) return "";
  std::vector<std::vector<std::string>> rows;
  for (const RunRecord& run : runs) {
    for (const Metric* metric : CourseOf(run.metrics, kCourseRows)) {
      const auto accuracy = metric->Value("accuracy");
      rows.push_back({run.name, absl::StrCat(metric->iteration),
                      absl::StrFormat("%.2f", metric->seconds), metric->kind,
                      Shown(metric->Value("loss"), 4), accuracy ? Percent(*accuracy) : "-"});
    }
  }
  return Section(
      "Loss and accuracy",
      absl::StrCat("<div class='pair'>", plots, "</div>\n",
                   Folded("Numbers of loss and accuracy",
                          Table("Evenly spread over the run",
                                {"run", "iteration", "seconds", "of", "loss", "accuracy"}, rows))));
}

std::string Distribution(const Breakdown& breakdown) {
  if (breakdown.iterations.size() < 2) return "";
  Histogram histogram;
  for (const IterationCost& cost : breakdown.iterations) {
    histogram.values.push_back(cost.seconds * 1e3);
  }
  histogram.x_label = "ms";
  histogram.y_label = "iterations";
  histogram.ink = Ink::Class("c-compute");
  histogram.beyond_ink = Ink::Class("c-waiting");
  histogram.x_max = breakdown.seconds.p50 * 3e3;
  const std::string sentence = absl::StrFormat(
      "Half of the iterations took at most %.2f ms, 99 %% at most %.2f ms, the longest %.2f ms.",
      breakdown.seconds.p50 * 1e3, breakdown.seconds.p99 * 1e3,
      *std::max_element(histogram.values.begin(), histogram.values.end()));
  histogram.label = absl::StrCat("Histogram of iteration times. ", sentence);
  return Section("How long iterations took",
                 Figure(Draw(histogram),
                        absl::StrCat(sentence,
                                     " All workers; the last bar also holds what took "
                                     "longer."),
                        true));
}

std::string Events(const RunRecord& run) {
  std::vector<std::vector<std::string>> rows;
  for (const Metric& metric : run.metrics) {
    if (metric.kind != "event" || rows.size() >= 200) continue;
    rows.push_back(
        {absl::StrCat(metric.iteration), absl::StrFormat("%.1f", metric.seconds), metric.text});
  }
  if (rows.empty()) return "";
  return Section(
      "What happened",
      absl::StrCat("<div class='left'>",
                   Table("Events of the run", {"iteration", "seconds", "event"}, rows), "</div>"));
}

std::string Config(const RunRecord& run) {
  const auto json = nlohmann::ordered_json::parse(run.config, nullptr, false);
  if (json.is_discarded()) return "";
  return Section(
      "What was asked for",
      Folded("config.json",
             absl::StrCat("<pre>",
                          EscapeXmlLines(json.dump(
                              2, ' ', false, nlohmann::ordered_json::error_handler_t::replace)),
                          "</pre>\n")));
}

std::string Comparison(const std::vector<RunRecord>& runs) {
  std::vector<std::vector<std::string>> rows;
  StackedBars bars;
  bars.unit = "ms an iteration";
  bars.parts = kParts;
  for (const RunRecord& run : runs) {
    const Summary& each = run.summary;
    rows.push_back({run.name, each.strategy, each.schedule, absl::StrCat(each.workers),
                    absl::StrCat(each.iterations), absl::StrFormat("%.1f", each.seconds),
                    each.accuracy ? Percent(*each.accuracy) : "-", Shown(each.loss, 4),
                    Shown(each.iteration_ms_p50, 2), Shown(each.compute_ms_p50, 2),
                    Shown(each.exposed_comm_ms_p50, 2), Shown(each.waiting_ms_p50, 2),
                    FormatBytes(each.bytes_sent)});
    if (run.breakdown.iterations.empty()) continue;
    bars.rows.push_back({run.name.substr(0, 40), PartsOf(run.breakdown)});
  }
  bars.label = "Bars of where the time of an iteration went in each run; the table has the numbers";
  return Section(
      "The runs",
      absl::StrCat("<div class='wide' tabindex='0' role='region' aria-label='Table of runs'>",
                   Table("Medians of an iteration in milliseconds",
                         {"run", "strategy", "schedule", "workers", "iterations", "seconds",
                          "accuracy", "loss", "iteration", "compute", "exposed", "waiting", "sent"},
                         rows),
                   "</div>",
                   Figure(Draw(bars), "Mean of all iterations of all workers of a run.", true)));
}

std::string Page(absl::string_view title, absl::string_view subtitle, const std::string& contents) {
  return absl::StrCat(
      "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>\n"
      "<meta name='viewport' content='width=device-width,initial-scale=1'>\n"
      "<meta name='color-scheme' content='light dark'>\n<title>",
      EscapeXml(title), "</title>\n<style>", kStyle, "</style></head>\n<body><header><h1>",
      EscapeXml(title), "</h1><p class='soft'>", EscapeXml(subtitle), "</p></header>\n<main>\n",
      contents, "</main>\n<footer>Made by syncopate report.</footer></body></html>\n");
}

}  // namespace

std::string ToHtml(const std::vector<RunRecord>& runs) {
  if (runs.size() != 1) {
    std::string contents = Comparison(runs);
    absl::StrAppend(&contents, Course(runs));
    for (const RunRecord& run : runs) {
      std::string text =
          absl::StrCat("<p>Who is late? ", EscapeXml(WhoIsLate(run.breakdown)), ".</p>");
      for (const std::string& note : run.notes) {
        absl::StrAppend(&text, "<p class='soft'>", EscapeXml(note), "</p>");
      }
      absl::StrAppend(&contents, Section(run.name, text));
    }
    return Page(absl::StrCat(runs.size(), " runs compared"), "Syncopate report", contents);
  }
  const RunRecord& run = runs[0];
  const Summary& summary = run.summary;
  std::string subtitle = absl::StrCat("Syncopate run", run.ended ? "" : " that has not ended");
  if (!summary.strategy.empty()) absl::StrAppend(&subtitle, " · strategy ", summary.strategy);
  if (!summary.schedule.empty()) absl::StrAppend(&subtitle, " · schedule ", summary.schedule);
  absl::StrAppend(&subtitle, " · ", summary.workers, summary.workers == 1 ? " worker" : " workers");
  return Page(run.name, subtitle,
              absl::StrCat(Tiles(summary), Notes(run), WhereTimeWent(run.breakdown),
                           WhoWasLate(run.breakdown), Timeline(run), Course(runs),
                           absl::StrCat(Distribution(run.breakdown), Events(run), Config(run))));
}

}  // namespace syncopate::observe
