#include "observe/html_report.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/figures.h"
#include "base/parse.h"
#include "base/xml.h"
#include "nlohmann/json.hpp"
#include "observe/html_course.h"
#include "observe/html_parts.h"
#include "observe/text_report.h"
#include "observe/text_table.h"
#include "observe/timeline_picture.h"
#include "picture/charts.h"

namespace syncopate::observe {
namespace {

using picture::Histogram;
using picture::Ink;
using picture::StackedBars;

constexpr size_t kRowsMax = 64;  // of a plot of workers

// As Values() gives them.
const std::vector<std::pair<std::string, Ink>> kParts = {
    {"compute", Ink::Class("c-compute")},
    {"pack", Ink::Class("c-pack")},
    {"network", Ink::Class("c-network")},
    {"waiting", Ink::Class("c-waiting")},
    {"other (framework)", Ink::Class("c-other")}};
const std::vector<std::pair<std::string, Ink>> kWallParts = {
    {"start", Ink::Class("c-load")},
    {"iterations", Ink::Class("c-compute")},
    {"measuring", Ink::Class("c-measuring")},
    {"evaluation", Ink::Class("c-update")},
    {"checkpoints", Ink::Class("c-pack")},
    {"end", Ink::Class("c-other")},
    {"before it was resumed", Ink::Class("c-forward")}};

std::vector<double> Values(const IterationParts& parts) {
  return {parts.compute, parts.pack, parts.network, parts.waiting, parts.other};
}

std::vector<double> Values(const WallTime& wall) {
  return {wall.start,       wall.iterations, wall.measuring, wall.evaluation,
          wall.checkpoints, wall.end,        wall.earlier};
}

// Bars of all parts that any of the rows has: a legend of what never happened only distracts.
StackedBars BarsOf(const std::vector<std::pair<std::string, Ink>>& parts,
                   const std::vector<StackedBars::Row>& rows) {
  StackedBars bars;
  bars.rows.resize(rows.size());
  for (size_t r = 0; r < rows.size(); ++r) bars.rows[r].name = rows[r].name;
  for (size_t p = 0; p < parts.size(); ++p) {
    const auto has = [&](const StackedBars::Row& row) { return row.values[p] > 0; };
    if (std::none_of(rows.begin(), rows.end(), has)) continue;
    bars.parts.push_back(parts[p]);
    for (size_t r = 0; r < rows.size(); ++r) bars.rows[r].values.push_back(rows[r].values[p]);
  }
  return bars;
}

std::string Tiles(const Summary& summary) {
  std::string text = "<dl class='tiles'>\n";
  const auto add = [&](absl::string_view name, absl::string_view value, absl::string_view more) {
    absl::StrAppend(&text, "<div><dt>", EscapeXml(name), "</dt><dd>", EscapeXml(value));
    if (!more.empty()) absl::StrAppend(&text, "<small>", EscapeXml(more), "</small>");
    absl::StrAppend(&text, "</dd></div>\n");
  };
  add("Wall time", Shown(summary.seconds, kTimeDigits, " s"),
      CountOf(static_cast<uint64_t>(summary.iterations), "iteration"));
  if (summary.accuracy) {
    add("Accuracy", Percent(*summary.accuracy),
        !summary.reached   ? ""
        : *summary.reached ? "target reached"
                           : "target not reached");
  }
  if (summary.loss) add("Loss", Shown(summary.loss, 4), "");
  if (summary.mean_ms) {
    const std::vector<std::string> figures = FiguresOf(*summary.mean_ms);
    add("Iteration", absl::StrCat(figures[0], " ms"),
        summary.iteration_ms_p50
            ? absl::StrCat("mean; median ", Shown(summary.iteration_ms_p50, 2, " ms"))
            : "mean");
    add("Compute", absl::StrCat(figures[1], " ms"), "of the mean iteration");
    add("Network", absl::StrCat(figures[3], " ms"), "training waited for it");
    add("Late workers", absl::StrCat(figures[4], " ms"), "training waited for them");
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

std::string WhereWallTimeWent(const Summary& summary) {
  if (!summary.wall) return "";
  StackedBars bars = BarsOf(kWallParts, {{"wall time", Values(*summary.wall)}});
  bars.unit = "seconds";
  const NamedParts parts = NamedWall(summary);
  std::vector<double> values;
  for (const auto& [name, value] : parts) values.push_back(value);
  const std::vector<std::string> figures = WholeAndParts(values, kTimeDigits);
  std::vector<std::string> named;
  for (size_t i = 0; i < parts.size(); ++i) {
    named.push_back(absl::StrCat(parts[i].first, " ", figures[i + 1], " s"));
  }
  const std::string sentence =
      absl::StrCat("The run took ", figures[0], " s: ", absl::StrJoin(named, ", "), ".");
  bars.label = absl::StrCat("A bar of where the wall time went. ", sentence);
  return Section("Where the wall time went",
                 absl::StrCat("<p class='strong'>", EscapeXml(sentence), "</p>",
                              Figure(Draw(bars),
                                     "As rank 0 spent it, from the start of its process until all "
                                     "files of the run but the summary were written.",
                                     true)));
}

// A row of the table of where time went.
template <typename Costs>
std::vector<std::string> CostRow(const std::string& name, const Costs& costs) {
  std::vector<std::string> row = {name};
  for (std::string& figure : FiguresOf(PartsOf(costs))) row.push_back(std::move(figure));
  row.insert(row.end(), {Milliseconds(costs.seconds.p50), Milliseconds(costs.seconds.p99),
                         FormatBytes(costs.bytes)});
  return row;
}

std::string WhereTimeWent(const Breakdown& breakdown) {
  if (breakdown.iterations.empty()) return "";
  std::vector<StackedBars::Row> bar_rows;
  std::vector<std::vector<std::string>> rows;
  if (breakdown.workers.size() > 1) {
    bar_rows.push_back({"all workers", Values(PartsOf(breakdown))});
    rows.push_back(CostRow("all workers", breakdown));
  }
  for (const WorkerCost& worker : breakdown.workers) {
    const std::string name = absl::StrCat("rank ", worker.rank, " ", worker.host);
    if (bar_rows.size() <= kRowsMax) {
      bar_rows.push_back({name.substr(0, 40), Values(PartsOf(worker))});
    }
    rows.push_back(CostRow(name, worker));
  }
  StackedBars bars = BarsOf(kParts, bar_rows);
  bars.unit = "ms an iteration";
  const IterationParts parts = PartsOf(breakdown);
  const double whole = std::max(parts.Sum(), 1e-9);
  std::vector<double> percents = Values(parts);
  for (double& percent : percents) percent *= 100 / whole;
  const std::vector<std::string> figures = WholeAndParts(percents, 0);
  const std::string sentence = absl::StrCat(
      "Of an iteration of ", FiguresOf(parts)[0], " ms, ", figures[1], " % were compute, ",
      figures[3], " % waiting for the network and ", figures[4], " % waiting for late workers.");
  bars.label = absl::StrCat("Bars of where the time of each worker went. ", sentence);
  std::string caption =
      "Means of all iterations, whose parts add up. Network and waiting together are the exposed "
      "communication: the training thread could not go on.";
  if (breakdown.workers.size() > kRowsMax) {
    absl::StrAppend(&caption, " The first ", kRowsMax, " of ", breakdown.workers.size(),
                    " workers; all are in the table.");
  }
  return Section(
      "Where the time of an iteration went",
      absl::StrCat("<p class='strong'>", EscapeXml(sentence), "</p>",
                   Figure(Draw(bars), caption, true),
                   Folded("Numbers of where the time went",
                          Table("Mean milliseconds of an iteration",
                                {"worker", "iteration", "compute", "pack", "network", "waiting",
                                 "other", "iteration p50", "iteration p99", "sent"},
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
  std::vector<std::string> names;
  std::vector<Summary> summaries;
  std::vector<StackedBars::Row> wall, parts;
  for (const RunRecord& run : runs) {
    names.push_back(run.name);
    summaries.push_back(run.summary);
    const std::string name = run.name.substr(0, 40);
    if (run.summary.wall) wall.push_back({name, Values(*run.summary.wall)});
    if (run.summary.mean_ms) parts.push_back({name, Values(*run.summary.mean_ms)});
  }
  const auto table = [](absl::string_view caption, const RunTable& of) {
    return of.rows.empty() ? "" : Table(caption, of.titles, of.rows);
  };
  const auto bars = [](const std::vector<std::pair<std::string, Ink>>& of,
                       const std::vector<StackedBars::Row>& rows, absl::string_view unit,
                       absl::string_view what) {
    StackedBars chart = BarsOf(of, rows);
    chart.unit = std::string(unit);
    chart.label = absl::StrCat("Bars of ", what, " in each run; the table has the numbers");
    return picture::Draw(chart);
  };
  std::string contents =
      Section("The runs", table("What was run and how it ended", RunsTable(names, summaries)));
  if (!wall.empty()) {
    absl::StrAppend(
        &contents,
        Section("Where the wall time went",
                absl::StrCat(Figure(bars(kWallParts, wall, "seconds", "where the wall time went"),
                                    "As rank 0 of a run spent it.", true),
                             Folded("Numbers of where the wall time went",
                                    table("Seconds", WallTable(names, summaries))))));
  }
  if (!parts.empty()) {
    absl::StrAppend(
        &contents,
        Section("Where the time of an iteration went",
                absl::StrCat(Figure(bars(kParts, parts, "ms an iteration",
                                         "where the time of an iteration went"),
                                    "Means of all iterations of all workers of a run, which add "
                                    "up.",
                                    true),
                             Folded("Numbers of where the time of an iteration went",
                                    table("Milliseconds", PartsTable(names, summaries))))));
  }
  return contents;
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
  absl::StrAppend(&subtitle, " · ", CountOf(static_cast<uint64_t>(summary.workers), "worker"));
  return Page(run.name, subtitle,
              absl::StrCat(Tiles(summary), Notes(run), WhereWallTimeWent(summary),
                           WhereTimeWent(run.breakdown), WhoWasLate(run.breakdown), Timeline(run),
                           Course(runs),
                           absl::StrCat(Distribution(run.breakdown), Events(run), Config(run))));
}

}  // namespace syncopate::observe
