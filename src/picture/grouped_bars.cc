#include "picture/grouped_bars.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "picture/chart_parts.h"
#include "picture/svg.h"

namespace syncopate::picture {
namespace {

constexpr double kLeft = 70, kRight = 20, kBar = 9, kGroupGap = 22;
constexpr double kPanelHeight = 170, kPanelTop = 42, kPanelBottom = 46, kChartTop = 66;
constexpr const char* kColours[] = {"#1b6ca8", "#e07b39", "#c9a227", "#7a9e7e", "#8d6a9f",
                                    "#b04a5a", "#9aa5b1", "#5b8e9c", "#c48b9f", "#6b7a3f"};

const char* Colour(size_t series) { return kColours[series % std::size(kColours)]; }

// From one group to the next: room for the bars and for the label below them.
double GroupWidth(const BarChart& chart) {
  double width = kBar * static_cast<double>(chart.series.size());
  for (const BarPanel& panel : chart.panels) {
    for (const BarPanel::Group& group : panel.groups) {
      width = std::max(width, TextWidth(group.label));
    }
  }
  return width + kGroupGap;
}

Legend LegendOf(const BarChart& chart) {
  Legend legend;
  for (size_t s = 0; s < chart.series.size(); ++s) legend.emplace_back(chart.series[s], Colour(s));
  return legend;
}

double ChartWidth(const BarChart& chart) {
  size_t groups = 1;
  for (const BarPanel& panel : chart.panels) groups = std::max(groups, panel.groups.size());
  return kLeft + kRight +
         std::max(WidthOf(LegendOf(chart)), GroupWidth(chart) * static_cast<double>(groups));
}

double ChartHeight(const BarChart& chart) {
  return kChartTop +
         static_cast<double>(chart.panels.size()) * (kPanelTop + kPanelHeight + kPanelBottom);
}

void DrawPanel(const BarChart& chart, const BarPanel& panel, double top, SvgPicture& svg) {
  double most = 0;
  for (const BarPanel::Group& group : panel.groups) {
    for (const double value : group.values) most = std::max(most, value);
  }
  if (!(most > 0)) most = 1;
  const double base = top + kPanelTop + kPanelHeight;
  const double scale = kPanelHeight / most;
  const double right =
      kLeft + GroupWidth(chart) * static_cast<double>(std::max<size_t>(1, panel.groups.size()));
  svg.Words(kLeft, top + 14, panel.title, {.size = 13, .bold = true});
  for (const double tick : Ticks(0, most, 4)) {
    if (tick > most) break;  // the highest bar reaches the top
    const double y = base - tick * scale;
    svg.Line(kLeft, y, right, y, "#ccd");
    svg.Words(kLeft - 6, y + 4, absl::StrFormat("%g", tick), {.size = 11, .anchor = "end"});
  }
  svg.Words(kLeft - 6, base - kPanelHeight - 8, chart.unit, {.size = 11, .anchor = "end"});
  for (size_t g = 0; g < panel.groups.size(); ++g) {
    const BarPanel::Group& group = panel.groups[g];
    const double middle = kLeft + GroupWidth(chart) * (static_cast<double>(g) + 0.5);
    const double x = middle - kBar * static_cast<double>(chart.series.size()) / 2;
    for (size_t s = 0; s < group.values.size(); ++s) {
      const double height = group.values[s] * scale;
      svg.Box(x + kBar * static_cast<double>(s), base - height, kBar - 1, height, Colour(s), "", 0,
              absl::StrFormat("%s %g %s", s < chart.series.size() ? chart.series[s] : "",
                              group.values[s], chart.unit));
    }
    svg.Words(middle, base + 16, group.label, {.size = 11, .anchor = "middle"});
    svg.Words(middle, base + 31, group.note, {.size = 11, .anchor = "middle", .fill = "#1b6ca8"});
  }
}

void DrawChart(const BarChart& chart, double top, SvgPicture& svg) {
  svg.Words(20, top + 24, chart.title, {.size = 16, .bold = true});
  Draw(LegendOf(chart), kLeft, top + 38, {}, svg);
  double panel_top = top + kChartTop;
  for (const BarPanel& panel : chart.panels) {
    DrawPanel(chart, panel, panel_top, svg);
    panel_top += kPanelTop + kPanelHeight + kPanelBottom;
  }
}

}  // namespace

std::string BarsToSvg(const std::vector<BarChart>& charts) {
  double width = 760, height = 0;
  for (const BarChart& chart : charts) {
    width = std::max(width, ChartWidth(chart));
    height += ChartHeight(chart);
  }
  SvgPicture svg;
  double top = 0;
  for (const BarChart& chart : charts) {
    DrawChart(chart, top, svg);
    top += ChartHeight(chart);
  }
  return svg.Finish(width, height);
}

}  // namespace syncopate::picture
