#include "picture/chart_parts.h"

#include <algorithm>

#include "picture/text_tree.h"

namespace syncopate::picture {
namespace {

constexpr double kBox = 11, kLineHeight = 20;

// From the box of one entry to that of the next.
double StepOf(absl::string_view name) { return 36 + TextWidth(name); }

}  // namespace

std::vector<double> Ticks(double lo, double hi, int count) {
  constexpr double kMax = 1e300;
  if (!std::isfinite(lo) || !std::isfinite(hi)) return {0, 1};
  lo = std::clamp(lo, -kMax, kMax);
  hi = std::clamp(hi, -kMax, kMax);
  if (hi < lo) std::swap(lo, hi);
  const double least = std::max(std::abs(lo), std::abs(hi)) * 1e-9;
  if (hi - lo <= least) {  // one value only, or as good as one
    const double room = std::max(std::abs(lo) * 0.1, 1e-6);
    lo -= room;
    hi += room;
  }
  const double rough = (hi - lo) / std::max(1, count);
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {1.0, 2.0, 2.5, 5.0}) {
    if (factor * power >= rough * 0.999) {
      step = factor * power;
      break;
    }
  }
  const double first = std::floor(lo / step + 1e-6);
  const double last = std::max(std::ceil(hi / step - 1e-6), first + 1);
  std::vector<double> ticks;
  for (int i = 0; i <= 2 * count + 2 && first + i <= last; ++i) ticks.push_back((first + i) * step);
  return ticks;
}

double TextWidth(absl::string_view text) { return 6.6 * static_cast<double>(ColumnsOf(text)); }

double WidthOf(const Legend& legend) {
  double width = 0;
  for (const auto& [name, ink] : legend) width += StepOf(name);
  return width;
}

double Draw(const Legend& legend, double x, double y, const LegendStyle& style, SvgPicture& svg) {
  double at = x, line = y;
  for (const auto& [name, ink] : legend) {
    if (at > x && at + StepOf(name) > x + style.width) {
      at = x;
      line += kLineHeight;
    }
    svg.Box(at, line, kBox, kBox, ink, style.edge);
    svg.Words(at + 17, line + 10, name, {.fill = style.words});
    at += StepOf(name);
  }
  return line + kLineHeight + 4 - y;
}

}  // namespace syncopate::picture
