// Charts as figures of an HTML page, each with a sentence for readers who cannot see it. Pure.
//
// Besides the classes that a chart names, they use these of the page's style sheet: ink (words),
// soft (lesser words), on (words on colour), grid, axis, line.
#ifndef SYNCOPATE_PICTURE_CHARTS_H_
#define SYNCOPATE_PICTURE_CHARTS_H_

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "picture/chart_parts.h"
#include "picture/svg.h"

namespace syncopate::picture {

struct Series {
  std::string name;
  Ink ink;
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
// Empty if no series has two points: a single dot is no course.
std::string Draw(const LineChart& chart);

struct StackedBars {
  std::string label;
  std::string unit;
  Legend parts;
  struct Row {
    std::string name;
    std::vector<double> values;  // as many as parts
  };
  std::vector<Row> rows;
};
// The figures in the bars are rounded such that they add up to the one behind the bar.
std::string Draw(const StackedBars& bars);

struct Histogram {
  std::string label;
  std::string x_label;
  std::string y_label;
  double x_max = 0;  // larger values are counted in the last bar
  Ink ink;
  Ink beyond_ink;  // of the last bar, where it holds larger values
  std::vector<double> values;
};
std::string Draw(const Histogram& histogram);

}  // namespace syncopate::picture

#endif  // SYNCOPATE_PICTURE_CHARTS_H_
