// What charts have in common: round numbers for their axes, and a legend.
#ifndef SYNCOPATE_PICTURE_CHART_PARTS_H_
#define SYNCOPATE_PICTURE_CHART_PARTS_H_

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "picture/svg.h"

namespace syncopate::picture {

// Round numbers from about `lo` to about `hi`, some `count` of them, at least two; all finite.
std::vector<double> Ticks(double lo, double hi, int count);

// About how wide text of 12 pixels is.
double TextWidth(absl::string_view text);

// Names and the inks that stand for them.
using Legend = std::vector<std::pair<std::string, Ink>>;

struct LegendStyle {
  double width = INFINITY;  // where this does not suffice, the next line is begun
  Ink words = {};
  Ink edge = {};  // of the boxes
};
// The width of a legend on one line.
double WidthOf(const Legend& legend);
// A coloured box and a name for each, from (x, y) downwards. Returns the height that it took.
double Draw(const Legend& legend, double x, double y, const LegendStyle& style, SvgPicture& svg);

}  // namespace syncopate::picture

#endif  // SYNCOPATE_PICTURE_CHART_PARTS_H_
