#include "lab/picture.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "lab/forwarding.h"
#include "picture/text_tree.h"

namespace syncopate::lab {
namespace {

struct Row {
  std::string tree;      // lines and the name
  std::string cells[4];  // address, rate, what it sends, what it gets
};

class Painter {
 public:
  Painter(const Plan& plan, const Settings& settings,
          const std::vector<std::array<double, 2>>& load)
      : plan_(plan),
        spec_(plan.spec),
        settings_(settings),
        load_(load),
        placed_(spec_.nodes.size(), false),
        drawn_(spec_.links.size(), false) {}

  std::string Paint() {
    for (size_t i = 0; i < spec_.nodes.size(); ++i) {
      if (!spec_.nodes[i].is_host) Place(static_cast<int>(i), -1, "", "");
    }
    for (size_t i = 0; i < spec_.nodes.size(); ++i) Place(static_cast<int>(i), -1, "", "");
    std::string text =
        Table(load_.empty() ? std::array<std::string, 4>{"address", "rate", "", ""}
                            : std::array<std::string, 4>{"address", "rate", "out now", "in now"});
    rows_.clear();
    for (size_t i = 0; i < spec_.links.size(); ++i) {
      if (drawn_[i]) continue;
      const Link& link = spec_.links[i];
      const std::string name =
          absl::StrCat(spec_.nodes[link.a].name, " ── ", spec_.nodes[link.b].name);
      Row row{name, {}};
      Describe(static_cast<int>(i), link.a, row);
      rows_.push_back(row);
    }
    if (!rows_.empty()) {
      absl::StrAppend(
          &text, "\n",
          Table(load_.empty() ? std::array<std::string, 4>{"", "rate", "", ""}
                              : std::array<std::string, 4>{"", "rate", "there now", "back now"}));
    }
    return text;
  }

 private:
  // Draws the node and, if it is a switch, all that hangs on it and was not drawn yet. Switches
  // that are joined to several are drawn under the first.
  void Place(int node, int by_link, const std::string& branch, const std::string& below) {
    if (placed_[node]) return;
    placed_[node] = true;
    Row row;
    row.tree = absl::StrCat(branch, spec_.nodes[node].name,
                            spec_.nodes[node].bystander ? " (bystander)" : "");
    row.cells[0] = plan_.address[node];
    if (by_link >= 0) {
      drawn_[by_link] = true;
      Describe(by_link, node, row);
    }
    rows_.push_back(row);
    if (spec_.nodes[node].is_host) return;
    std::vector<std::pair<int, int>> children;  // node, link
    for (const bool hosts : {true, false}) {
      for (size_t i = 0; i < spec_.links.size(); ++i) {
        const Link& link = spec_.links[i];
        if (link.a != node && link.b != node) continue;
        const int other = OtherEnd(link, node);
        if (!placed_[other] && spec_.nodes[other].is_host == hosts) {
          children.push_back({other, static_cast<int>(i)});
        }
      }
    }
    for (size_t i = 0; i < children.size(); ++i) {
      const bool last = i + 1 == children.size();
      Place(children[i].first, children[i].second, picture::BranchTo(below, last),
            picture::IndentBelow(below, last));
    }
  }

  void Describe(int link, int from, Row& row) const {
    const int out = spec_.links[link].a == from ? 0 : 1;
    const Setting& there = settings_.links[link][out];
    const Setting& back = settings_.links[link][1 - out];
    row.cells[1] =
        there == back ? RateText(there) : absl::StrCat(RateText(there), " / ", RateText(back));
    if (load_.empty()) return;
    row.cells[2] = LoadText(there, load_[link][out]);
    row.cells[3] = LoadText(back, load_[link][1 - out]);
  }

  static std::string RateText(const Setting& setting) {
    if (setting.cut) return "cut";
    return setting.rate > 0 ? ReadableRate(static_cast<double>(setting.rate)) : "not shaped";
  }

  static std::string LoadText(const Setting& setting, double bits) {
    const std::string rate = ReadableRate(bits);
    if (bits < 1) return rate;
    if (setting.rate <= 0 || setting.cut) return rate;
    return absl::StrFormat("%s %3.0f %%", rate, 100 * bits / static_cast<double>(setting.rate));
  }

  std::string Table(const std::array<std::string, 4>& titles) const {
    size_t tree_width = 0;
    std::array<size_t, 4> widths = {};
    for (int i = 0; i < 4; ++i) widths[i] = titles[i].size();
    for (const Row& row : rows_) {
      tree_width = std::max(tree_width, picture::ColumnsOf(row.tree));
      for (int i = 0; i < 4; ++i) widths[i] = std::max(widths[i], row.cells[i].size());
    }
    std::string text = Line("", titles, tree_width, widths);
    for (const Row& row : rows_) {
      absl::StrAppend(&text,
                      Line(row.tree, {row.cells[0], row.cells[1], row.cells[2], row.cells[3]},
                           tree_width, widths));
    }
    return text;
  }

  static std::string Line(const std::string& tree, const std::array<std::string, 4>& cells,
                          size_t tree_width, const std::array<size_t, 4>& widths) {
    std::string line = picture::PaddedTo(tree_width, tree);
    for (int i = 0; i < 4; ++i) {
      if (widths[i] == 0) continue;
      absl::StrAppend(&line, "  ", std::string(widths[i] - cells[i].size(), ' '), cells[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    return line + "\n";
  }

  const Plan& plan_;
  const Spec& spec_;
  const Settings& settings_;
  const std::vector<std::array<double, 2>>& load_;
  std::vector<bool> placed_;
  std::vector<bool> drawn_;
  std::vector<Row> rows_;
};

}  // namespace

std::string ReadableRate(double bits) {
  if (bits >= 1e9) return absl::StrFormat("%.4g Gbit/s", bits / 1e9);
  if (bits >= 1e6) return absl::StrFormat("%.4g Mbit/s", bits / 1e6);
  if (bits >= 1) return absl::StrFormat("%.3g kbit/s", bits / 1e3);
  return "0";
}

std::string Picture(const Plan& plan, const Settings& settings,
                    const std::vector<std::array<double, 2>>& load) {
  return Painter(plan, settings, load).Paint();
}

}  // namespace syncopate::lab
