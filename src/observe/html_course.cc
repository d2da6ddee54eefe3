#include "observe/html_course.h"

#include <iterator>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/figures.h"
#include "observe/html_parts.h"
#include "observe/text_report.h"
#include "observe/text_table.h"
#include "picture/charts.h"

namespace syncopate::observe {
namespace {

using picture::Ink;
using picture::LineChart;

constexpr size_t kCourseRows = 40;
constexpr const char* kColours[] = {"c-compute", "c-network", "c-update",
                                    "c-pack",    "c-waiting", "c-load"};

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

// What a chart of the course shows: a value of the metrics of certain kinds.
struct CourseChart {
  const char* title;
  const char* value;
  std::vector<std::pair<const char*, const char*>> kinds;  // a kind and what it is called
};

std::string Draw(const CourseChart& what, const std::vector<RunRecord>& runs, bool over_time) {
  const bool accuracy = absl::string_view(what.value) == "accuracy";
  LineChart chart;
  chart.x_label = over_time ? "seconds" : "iterations";
  chart.y_label = accuracy ? "accuracy, %" : what.value;
  chart.from_zero = !accuracy;
  if (accuracy) chart.y_max = 100;
  chart.label = absl::StrCat(what.title, " over ", chart.x_label, "; the table has the numbers");
  size_t colour = 0;
  for (const RunRecord& run : runs) {
    for (const auto& [kind, name] : what.kinds) {
      auto points = Points(run.metrics, kind, what.value, over_time, accuracy ? 100 : 1);
      const bool dots = absl::string_view(kind) == "evaluate" && points.size() <= 60;
      chart.series.push_back({runs.size() == 1 ? name : run.name,
                              Ink::Class(kColours[colour++ % std::size(kColours)]),
                              std::move(points), dots});
    }
  }
  return Figure(picture::Draw(chart), absl::StrCat(what.title, " over ", chart.x_label, "."),
                false);
}

}  // namespace

std::string Course(const std::vector<RunRecord>& runs) {
  const std::vector<CourseChart> one = {
      {"Loss", "loss", {{"train", "training"}, {"evaluate", "evaluation"}}},
      {"Accuracy", "accuracy", {{"train", "training"}, {"evaluate", "evaluation"}}}};
  const std::vector<CourseChart> several = {
      {"Loss of training", "loss", {{"train", ""}}},
      {"Loss of evaluation", "loss", {{"evaluate", ""}}},
      {"Accuracy of evaluation", "accuracy", {{"evaluate", ""}}}};
  std::string plots;
  for (const CourseChart& chart : runs.size() == 1 ? one : several) {
    for (const bool over_time : {false, true}) {
      absl::StrAppend(&plots, Draw(chart, runs, over_time));
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

}  // namespace syncopate::observe
