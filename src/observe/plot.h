// Plots as SVG that stands inside an HTML page: colours are classes of the page's style sheet, so
// that they suit light and dark pages, and every plot has a sentence for who cannot see it. Pure.
#ifndef SYNCOPATE_OBSERVE_PLOT_H_
#define SYNCOPATE_OBSERVE_PLOT_H_

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace syncopate::observe {

// Collects the shapes of one picture. Coordinates are pixels, y grows downwards.
class SvgCanvas {
 public:
  // `colour`: a class of the page. `title`: shown when pointed at; empty: nothing.
  void Box(double x, double y, double width, double height, absl::string_view colour,
           absl::string_view title = "");
  void Line(double x1, double y1, double x2, double y2, absl::string_view colour);
  void Path(const std::vector<std::pair<double, double>>& points, absl::string_view colour);
  void Dot(double x, double y, absl::string_view colour, absl::string_view title);
  // `anchor`: "start", "middle" or "end" is at x.
  void Words(double x, double y, absl::string_view text, absl::string_view anchor = "start",
             absl::string_view colour = "ink");
  void WordsUpwards(double x, double y, absl::string_view text);

  // All shapes of another, on top.
  void Add(const SvgCanvas& other) { body_ += other.body_; }

  // `label`: what the picture shows, in a sentence.
  std::string Finish(double width, double height, absl::string_view label) const;

 private:
  std::string body_;
};

// Round numbers from about `lo` to about `hi`, some `count` of them, at least two; all finite.
std::vector<double> Ticks(double lo, double hi, int count);

struct Series {
  std::string name;
  std::string colour;  // class
  std::vector<std::pair<double, double>> points;
  bool dots = false;  // few points that are each worth seeing
};

struct LineChart {
  std::string label;
  std::string x_label;
  std::string y_label;
  bool from_zero = false;   // the y axis
  double y_max = INFINITY;  // no value is larger, so the axis need not be
  std::vector<Series> series;
};
// Empty if no series has a point.
std::string Draw(const LineChart& chart);

struct StackedBars {
  std::string label;
  std::string unit;
  std::vector<std::pair<std::string, std::string>> parts;  // name and class
  struct Row {
    std::string name;
    std::vector<double> values;  // as many as parts
  };
  std::vector<Row> rows;
};
std::string Draw(const StackedBars& bars);

struct Histogram {
  std::string label;
  std::string x_label;
  std::string y_label;
  double x_max = 0;  // larger values are counted in the last bar
  std::vector<double> values;
};
std::string Draw(const Histogram& histogram);

}  // namespace syncopate::observe

#endif  // SYNCOPATE_OBSERVE_PLOT_H_
