// Charts of grouped bars as SVG.
#ifndef SYNCOPATE_PICTURE_GROUPED_BARS_H_
#define SYNCOPATE_PICTURE_GROUPED_BARS_H_

#include <string>
#include <vector>

namespace syncopate::picture {

// Bars of one axis; a group has one value for each series.
struct BarPanel {
  struct Group {
    std::string label;
    std::vector<double> values;  // not negative
    std::string note;            // stands above the group
  };
  std::string title;
  std::vector<Group> groups;
};

struct BarChart {
  std::string title;
  std::string unit;  // of the values
  std::vector<std::string> series;
  std::vector<BarPanel> panels;  // below one another, each with its own scale
};

// One picture with all charts below one another.
std::string BarsToSvg(const std::vector<BarChart>& charts);

}  // namespace syncopate::picture

#endif  // SYNCOPATE_PICTURE_GROUPED_BARS_H_
