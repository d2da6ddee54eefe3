#include "picture/charts.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/figures.h"

namespace syncopate::picture {
namespace {

constexpr size_t kPointsMax = 500;

const Ink kWords = Ink::Class("ink"), kSoft = Ink::Class("soft"), kOn = Ink::Class("on"),
          kGrid = Ink::Class("grid"), kAxis = Ink::Class("axis");

std::string Tick(double value) {
  return absl::StrFormat("%.6g", std::abs(value) < 1e-12 ? 0 : value);
}

// Decimals with which the largest number has four digits or a few more; at most 3.
int DigitsFor(double most) {
  if (!(most > 0) || !std::isfinite(most)) return 0;
  return std::clamp(3 - static_cast<int>(std::floor(std::log10(most))), 0, 3);
}

// Maps a range of numbers to a range of pixels.
struct Scale {
  double lo = 0, hi = 1;
  double from = 0, to = 1;

  double operator()(double value) const { return from + (value - lo) / (hi - lo) * (to - from); }
};

// The frame of a chart: where its plot lies, its axes and what they say.
struct Frame {
  double left = 0, top = 0, right = 0, bottom = 0;
  Scale x, y;
};

Frame DrawFrame(SvgPicture& svg, double width, double height, const std::vector<double>& x_ticks,
                const std::vector<double>& y_ticks, absl::string_view x_label,
                absl::string_view y_label) {
  double label_width = 0;
  for (const double tick : y_ticks) label_width = std::max(label_width, TextWidth(Tick(tick)));
  Frame frame;
  frame.left = 30 + label_width;
  frame.top = 12;
  frame.right = width - 16;
  frame.bottom = height - 44;
  frame.x = {x_ticks.front(), x_ticks.back(), frame.left, frame.right};
  frame.y = {y_ticks.front(), y_ticks.back(), frame.bottom, frame.top};
  for (const double tick : y_ticks) {
    svg.Line(frame.left, frame.y(tick), frame.right, frame.y(tick), kGrid);
    svg.Words(frame.left - 6, frame.y(tick) + 4, Tick(tick), {.anchor = "end", .fill = kSoft});
  }
  for (const double tick : x_ticks) {
    svg.Line(frame.x(tick), frame.bottom, frame.x(tick), frame.bottom + 4, kAxis);
    svg.Words(frame.x(tick), frame.bottom + 18, Tick(tick), {.anchor = "middle", .fill = kSoft});
  }
  svg.Line(frame.left, frame.bottom, frame.right, frame.bottom, kAxis);
  svg.Words((frame.left + frame.right) / 2, height - 6, x_label,
            {.anchor = "middle", .fill = kWords});
  svg.Words(12, (frame.top + frame.bottom) / 2, y_label,
            {.anchor = "middle", .fill = kWords, .turned = -90});
  return frame;
}

// Means of neighbours where there are more points than can be seen.
std::vector<std::pair<double, double>> Thinned(
    const std::vector<std::pair<double, double>>& points) {
  std::vector<std::pair<double, double>> finite;
  for (const auto& point : points) {
    if (std::isfinite(point.first) && std::isfinite(point.second)) finite.push_back(point);
  }
  if (finite.size() <= kPointsMax) return finite;
  std::vector<std::pair<double, double>> thinned;
  for (size_t i = 0; i < kPointsMax; ++i) {
    const size_t begin = i * finite.size() / kPointsMax;
    const size_t end = (i + 1) * finite.size() / kPointsMax;
    std::pair<double, double> mean = {0, 0};
    for (size_t j = begin; j < end; ++j) {
      mean.first += finite[j].first / static_cast<double>(end - begin);
      mean.second += finite[j].second / static_cast<double>(end - begin);
    }
    thinned.push_back(mean);
  }
  return thinned;
}

}  // namespace

std::string Draw(const LineChart& chart) {
  constexpr double kWidth = 540, kHeight = 260;
  std::vector<Series> series;
  size_t most = 0;
  double x_lo = INFINITY, x_hi = -INFINITY, y_lo = INFINITY, y_hi = -INFINITY;
  for (const Series& each : chart.series) {
    series.push_back(each);
    series.back().points = Thinned(each.points);
    most = std::max(most, series.back().points.size());
    for (const auto& [x, y] : series.back().points) {
      x_lo = std::min(x_lo, x);
      x_hi = std::max(x_hi, x);
      y_lo = std::min(y_lo, y);
      y_hi = std::max(y_hi, y);
    }
  }
  if (most < 2) return "";
  if (chart.from_zero) y_lo = std::min(0.0, y_lo);
  std::vector<double> y_ticks = Ticks(y_lo, y_hi, 5);
  while (y_ticks.size() > 2 && y_ticks[y_ticks.size() - 2] >= chart.y_max) y_ticks.pop_back();
  SvgPicture svg;
  const Frame frame =
      DrawFrame(svg, kWidth, kHeight, Ticks(x_lo, x_hi, 6), y_ticks, chart.x_label, chart.y_label);
  Legend names;
  for (const Series& each : series) {
    if (each.points.empty()) continue;
    names.emplace_back(each.name, each.ink);
    std::vector<Point> path;
    for (const auto& [x, y] : each.points) path.push_back({frame.x(x), frame.y(y)});
    svg.Path(path, each.ink);
    if (!each.dots && path.size() > 1) continue;
    for (size_t i = 0; i < path.size(); ++i) {
      svg.Circle(path[i].x, path[i].y, 3.5, each.ink, "",
                 absl::StrFormat("%s: %s at %s", each.name, Tick(each.points[i].second),
                                 Tick(each.points[i].first)));
    }
  }
  double height = kHeight;
  if (names.size() > 1) {
    height += 6 + Draw(names, frame.left, kHeight + 6,
                       {.width = kWidth - frame.left, .words = kWords}, svg);
  }
  return svg.FinishForPage(kWidth, height, chart.label);
}

std::string Draw(const StackedBars& bars) {
  constexpr double kWidth = 1080, kRow = 30, kNamesWidthMax = 264;
  if (bars.rows.empty()) return "";
  double names_width = TextWidth("rank");
  double most = 0;
  for (const StackedBars::Row& row : bars.rows) {
    names_width = std::max(names_width, TextWidth(row.name));
    double sum = 0;
    for (const double value : row.values) sum += std::isfinite(value) ? std::max(0.0, value) : 0;
    most = std::max(most, sum);
  }
  const int digits = DigitsFor(most);
  SvgPicture svg;
  const double left = 16 + std::min(names_width, kNamesWidthMax);
  const double top = 6 + Draw(bars.parts, left, 2, {.width = kWidth - left, .words = kWords}, svg);
  const double bottom = top + kRow * static_cast<double>(bars.rows.size());
  const std::vector<double> ticks = Ticks(0, most, 8);
  const Scale x{ticks.front(), ticks.back(), left, kWidth - 80};
  for (const double tick : ticks) {
    svg.Line(x(tick), top, x(tick), bottom, kGrid);
    svg.Words(x(tick), bottom + 16, Tick(tick), {.anchor = "middle", .fill = kSoft});
  }
  for (size_t r = 0; r < bars.rows.size(); ++r) {
    const StackedBars::Row& row = bars.rows[r];
    const double y = top + kRow * static_cast<double>(r);
    svg.Words(left - 8, y + 20, row.name, {.anchor = "end", .fill = kWords});
    const std::vector<double> rounded = RoundedParts(row.values, digits);
    double at = 0;
    for (size_t p = 0; p < row.values.size() && p < bars.parts.size(); ++p) {
      const double value = std::isfinite(row.values[p]) ? std::max(0.0, row.values[p]) : 0;
      if (value <= 0) continue;
      const std::string words = Fixed(rounded[p], digits);
      const double width = x(at + value) - x(at);
      svg.Box(x(at), y + 4, width, kRow - 8, bars.parts[p].second, "", 0,
              absl::StrCat(row.name, ", ", bars.parts[p].first, ": ", words, " ", bars.unit));
      if (width > 10 + TextWidth(words)) {
        svg.Words(x(at) + width / 2, y + 19, words, {.anchor = "middle", .fill = kOn});
      }
      at += value;
    }
    svg.Words(x(at) + 6, y + 19,
              Fixed(std::accumulate(rounded.begin(), rounded.end(), 0.0), digits),
              {.fill = kWords});
  }
  svg.Words((left + kWidth - 80) / 2, bottom + 34, bars.unit, {.anchor = "middle", .fill = kWords});
  return svg.FinishForPage(kWidth, bottom + 42, bars.label);
}

std::string Draw(const Histogram& histogram) {
  constexpr double kWidth = 1080, kHeight = 240;
  constexpr size_t kBins = 60;
  double lo = INFINITY, hi = -INFINITY;
  for (const double value : histogram.values) {
    if (!std::isfinite(value)) continue;
    lo = std::min(lo, value);
    hi = std::max(hi, value);
  }
  if (!(lo <= hi)) return "";
  const bool beyond = histogram.x_max > lo && hi > histogram.x_max;
  if (beyond) hi = histogram.x_max;
  const std::vector<double> x_ticks = Ticks(lo, hi, 10);
  const double first = x_ticks.front(), last = x_ticks.back();
  std::vector<int> counts(kBins);
  for (const double value : histogram.values) {
    if (!std::isfinite(value)) continue;
    const double place = (value - first) / (last - first) * static_cast<double>(kBins);
    ++counts[static_cast<size_t>(std::clamp(place, 0.0, static_cast<double>(kBins - 1)))];
  }
  SvgPicture svg;
  const int most = *std::max_element(counts.begin(), counts.end());
  const Frame frame = DrawFrame(svg, kWidth, kHeight, x_ticks, Ticks(0, most, 4), histogram.x_label,
                                histogram.y_label);
  for (size_t i = 0; i < kBins; ++i) {
    if (counts[i] == 0) continue;
    const double begin = first + (last - first) * static_cast<double>(i) / kBins;
    const double end = first + (last - first) * static_cast<double>(i + 1) / kBins;
    const bool open = beyond && i == kBins - 1;
    svg.Box(frame.x(begin) + 0.5, frame.y(counts[i]), frame.x(end) - frame.x(begin) - 1,
            frame.bottom - frame.y(counts[i]), open ? histogram.beyond_ink : histogram.ink, "", 0,
            absl::StrFormat("%.2f to %s: %d", begin, open ? "longer" : absl::StrFormat("%.2f", end),
                            counts[i]));
  }
  return svg.FinishForPage(kWidth, kHeight, histogram.label);
}

}  // namespace syncopate::picture
