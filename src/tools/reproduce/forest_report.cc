#include "tools/reproduce/forest_report.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"
#include "picture/grouped_bars.h"

namespace syncopate::tools::reproduce {
namespace {

using Json = nlohmann::ordered_json;

// Never negative, also where rounding would make it so.
double Gap(const ForestTime& forest) {
  return std::max(0.0, forest.seconds / forest.bound_seconds - 1);
}

std::string TenthsOfMilliseconds(double seconds) { return absl::StrFormat("%.1f", seconds * 1e3); }

void AppendBaselineTable(const Figure& figure, std::string& text) {
  size_t width = 6;
  for (const FigureRow& row : figure.rows) width = std::max(width, row.active.size());
  absl::StrAppend(&text, absl::StrFormat("%5s %-4s %-*s %8s %6s", "Gb/s", "", width, "active",
                                         "forest", "gap %"));
  for (const BaselineTime& baseline : figure.rows[0].baselines) {
    absl::StrAppend(&text, absl::StrFormat(" %11s", baseline.name));
  }
  absl::StrAppend(&text, absl::StrFormat("  %6s  %6s\n", "ratio", "overl."));
  for (const FigureRow& row : figure.rows) {
    absl::StrAppend(
        &text,
        absl::StrFormat("%5g %-4s %-*s %8s %6.2f", row.gigabits, row.cluster, width, row.active,
                        TenthsOfMilliseconds(row.forest.seconds), 100 * Gap(row.forest)));
    for (size_t i = 0; i < row.baselines.size(); ++i) {
      absl::StrAppend(&text,
                      absl::StrFormat(" %10s%s", TenthsOfMilliseconds(row.baselines[i].time.staged),
                                      i == row.best ? "*" : " "));
    }
    absl::StrAppend(&text, absl::StrFormat("  %6.2f  %6.2f\n", row.ratio, row.ratio_overlapped));
  }
}

void AppendOverlapTable(const Figure& figure, std::string& text) {
  absl::StrAppend(&text, absl::StrFormat("%5s %-10s %11s %11s %8s\n", "Gb/s", "active",
                                         "overlapped", "separate", "saved %"));
  for (const FigureRow& row : figure.rows) {
    absl::StrAppend(&text, absl::StrFormat("%5g %-10s %11s %11s %8.1f\n", row.gigabits, row.active,
                                           TenthsOfMilliseconds(row.forest.seconds),
                                           TenthsOfMilliseconds(row.separate.seconds),
                                           100 * row.overlap_saving));
  }
}

Json RowToJson(const FigureRow& row) {
  Json json = {{"cluster", row.cluster},
               {"active", row.active},
               {"between_gigabits", row.gigabits},
               {"forest_seconds", row.forest.seconds},
               {"bound_seconds", row.forest.bound_seconds},
               {"gap", Gap(row.forest)},
               {"plan_seconds", row.forest.plan_seconds},
               {"baselines", Json::array()},
               {"best", row.baselines[row.best].name},
               {"ratio", row.ratio},
               {"best_overlapped", row.baselines[row.best_overlapped].name},
               {"ratio_overlapped", row.ratio_overlapped}};
  if (row.figure == 7) {
    json["forest_separate_seconds"] = row.separate.seconds;
    json["overlap_saving"] = row.overlap_saving;
  }
  for (const BaselineTime& baseline : row.baselines) {
    json["baselines"].push_back({{"name", baseline.name},
                                 {"in_paper", baseline.in_paper},
                                 {"staged_seconds", baseline.time.staged},
                                 {"overlapped_seconds", baseline.time.pipelined},
                                 {"limit", baseline.time.limit}});
  }
  return json;
}

picture::BarChart ChartOf(const Figure& figure) {
  picture::BarChart chart;
  chart.title = absl::StrCat("Figure ", figure.number, ": ", figure.title);
  chart.unit = std::string("s");
  if (figure.number == 7) {
    chart.series = {"overlapped", "separate"};
  } else {
    chart.series = {"forest"};
    for (const BaselineTime& baseline : figure.rows[0].baselines) {
      chart.series.push_back(baseline.name);
    }
  }
  for (const FigureRow& row : figure.rows) {
    const std::string title = absl::StrFormat("%g Gb/s between machines", row.gigabits);
    if (chart.panels.empty() || chart.panels.back().title != title) {
      chart.panels.push_back({title, {}});
    }
    picture::BarPanel::Group group;
    group.label = row.active == "all" ? row.cluster : row.active;
    group.values = {row.forest.seconds};
    if (figure.number == 7) {
      group.values.push_back(row.separate.seconds);
      group.note = absl::StrFormat("-%.0f %%", 100 * row.overlap_saving);
    } else {
      for (const BaselineTime& baseline : row.baselines) {
        group.values.push_back(baseline.time.staged);
      }
      group.note = absl::StrFormat("%.2fx", row.ratio);
    }
    chart.panels.back().groups.push_back(std::move(group));
  }
  return chart;
}

}  // namespace

std::string FiguresToText(const std::vector<Figure>& figures, const FigureOptions& options) {
  std::string text = absl::StrFormat(
      "all-reduce of %.2f GB, network between machines: %s; times in ms, * the best baseline of "
      "the "
      "paper, ratio: how many times as long it takes as the forest\n",
      kModelBytes / 1e9, Name(options.between));
  for (const Figure& figure : figures) {
    absl::StrAppend(&text, "\nFigure ", figure.number, ": ", figure.title, "\n");
    if (figure.number == 7) {
      AppendOverlapTable(figure, text);
    } else {
      AppendBaselineTable(figure, text);
    }
    absl::StrAppend(&text, "published  ", figure.published, "\nfound      ", figure.found, "\n");
  }
  absl::StrAppend(&text, "\nassumed\n");
  for (const std::string& line : Assumptions(options)) absl::StrAppend(&text, "  ", line, "\n");
  return text;
}

std::string FiguresToJson(const std::vector<Figure>& figures, const FigureOptions& options) {
  Json json = {{"bytes", kModelBytes},
               {"network", std::string(Name(options.between))},
               {"assumptions", Assumptions(options)},
               {"figures", Json::array()}};
  for (const Figure& figure : figures) {
    Json rows = Json::array();
    for (const FigureRow& row : figure.rows) rows.push_back(RowToJson(row));
    json["figures"].push_back({{"figure", figure.number},
                               {"title", figure.title},
                               {"published", figure.published},
                               {"found", figure.found},
                               {"rows", std::move(rows)}});
  }
  return json.dump(2) + "\n";
}

std::string FiguresToSvg(const std::vector<Figure>& figures) {
  std::vector<picture::BarChart> charts;
  for (const Figure& figure : figures) charts.push_back(ChartOf(figure));
  return picture::BarsToSvg(charts);
}

}  // namespace syncopate::tools::reproduce
