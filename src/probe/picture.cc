#include "probe/picture.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/units.h"
#include "picture/text_tree.h"

namespace syncopate::probe {
namespace {

std::string Workers(const NetworkShape::Host& host) {
  return absl::StrCat(host.workers.size() == 1 ? "worker " : "workers ",
                      absl::StrJoin(host.workers, ","));
}

// The lines of the tree, with what stands beside them in a column.
struct Tree {
  std::vector<std::pair<std::string, std::string>> lines;  // the tree itself, what stands beside it

  std::string Text() const {
    size_t columns = 0;
    for (const auto& [tree, note] : lines) columns = std::max(columns, picture::ColumnsOf(tree));
    std::string text;
    for (const auto& [tree, note] : lines) {
      absl::StrAppend(&text, note.empty() ? tree : picture::PaddedTo(columns + 3, tree), note,
                      "\n");
    }
    return text;
  }
};

std::string Both(const char* out, double out_rate, const char* in, double in_rate) {
  return absl::StrFormat("%s %-12s %s %-12s", out, FormatRate(out_rate), in, FormatRate(in_rate));
}

void AddHosts(const NetworkShape& shape, const std::vector<int>& hosts, const std::string& indent,
              Tree& tree) {
  for (size_t i = 0; i < hosts.size(); ++i) {
    const NetworkShape::Host& host = shape.hosts[static_cast<size_t>(hosts[i])];
    tree.lines.emplace_back(
        absl::StrCat(picture::BranchTo(indent, i + 1 == hosts.size()), host.name),
        absl::StrCat(Both("out ", host.out, "in  ", host.in), "  ", Workers(host)));
  }
}

void AddRacks(const NetworkShape& shape, const std::vector<int>& racks, const std::string& indent,
              Tree& tree) {
  for (size_t i = 0; i < racks.size(); ++i) {
    const NetworkShape::Rack& rack = shape.racks[static_cast<size_t>(racks[i])];
    const bool last = i + 1 == racks.size();
    tree.lines.emplace_back(absl::StrCat(picture::BranchTo(indent, last), rack.name),
                            absl::StrCat(Both("up  ", rack.up, "down", rack.down), "  latency ",
                                         FormatSeconds(rack.latency)));
    AddHosts(shape, rack.hosts, picture::IndentBelow(indent, last), tree);
  }
}

std::string PairTable(const NetworkShape& shape) {
  std::string text = "bytes/s from (down) to (across):\n";
  absl::StrAppend(&text, absl::StrFormat("%-16s", ""));
  for (const NetworkShape::Host& to : shape.hosts) {
    absl::StrAppend(&text, absl::StrFormat(" %12s", to.name));
  }
  text += '\n';
  for (size_t from = 0; from < shape.hosts.size(); ++from) {
    absl::StrAppend(&text, absl::StrFormat("%-16s", shape.hosts[from].name));
    for (size_t to = 0; to < shape.hosts.size(); ++to) {
      absl::StrAppend(
          &text, absl::StrFormat(
                     " %12s", from == to ? std::string("-") : FormatRate(shape.links[from][to])));
    }
    text += '\n';
  }
  return text;
}

// ---- SVG

constexpr double kHostWidth = 118, kHostHeight = 54, kGap = 14, kTop = 150;

std::string Escape(const std::string& text) {
  return absl::StrReplaceAll(text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}});
}

std::string Box(double x, double y, double width, double height, const char* fill) {
  return absl::StrFormat(
      "<rect x='%.0f' y='%.0f' width='%.0f' height='%.0f' rx='8' fill='%s' stroke='#345'/>\n", x, y,
      width, height, fill);
}

std::string Words(double x, double y, const std::string& text, int size, bool bold = false) {
  return absl::StrFormat(
      "<text x='%.0f' y='%.0f' font-size='%d' text-anchor='middle'%s>%s</text>\n", x, y, size,
      bold ? " font-weight='bold'" : "", Escape(text));
}

// The wider the line, the more it carries.
std::string Line(double x1, double y1, double x2, double y2, double rate, double most) {
  const double width = 1.5 + 8 * rate / std::max(most, 1.0);
  return absl::StrFormat(
      "<line x1='%.0f' y1='%.0f' x2='%.0f' y2='%.0f' stroke='#78a' stroke-width='%.1f'/>\n", x1, y1,
      x2, y2, width);
}

std::string RateWords(double out, double in) {
  if (std::abs(out - in) < 0.05 * std::max(out, in)) return FormatRate((out + in) / 2);
  return absl::StrCat("↑", FormatRate(out), " ↓", FormatRate(in));
}

}  // namespace

std::string PictureText(const NetworkShape& shape) {
  Tree tree;
  if (!shape.links.empty()) {
    tree.lines.emplace_back("every pair of hosts has a link of its own", "");
    AddHosts(shape, shape.racks.front().hosts, "", tree);
    return absl::StrCat(tree.Text(), "\n", PairTable(shape));
  }
  if (shape.racks.size() < 2) {
    tree.lines.emplace_back("switch",
                            absl::StrCat("latency ", FormatSeconds(shape.racks.front().latency)));
    AddHosts(shape, shape.racks.front().hosts, "", tree);
    return tree.Text();
  }
  tree.lines.emplace_back(
      "core", absl::StrCat("latency between racks ", FormatSeconds(shape.latency_between_racks)));
  if (shape.pods.size() < 2) {
    AddRacks(shape, shape.pods.front().racks, "", tree);
    return tree.Text();
  }
  for (size_t p = 0; p < shape.pods.size(); ++p) {
    const NetworkShape::Pod& pod = shape.pods[p];
    const bool last = p + 1 == shape.pods.size();
    tree.lines.emplace_back(absl::StrCat(picture::BranchTo("", last), pod.name),
                            Both("up  ", pod.up, "down", pod.down));
    AddRacks(shape, pod.racks, picture::IndentBelow("", last), tree);
  }
  return tree.Text();
}

std::string PictureSvg(const NetworkShape& shape) {
  double most = 0;
  for (const NetworkShape::Host& host : shape.hosts) most = std::max({most, host.out, host.in});
  const double width =
      std::max<double>(320, kGap + static_cast<double>(shape.hosts.size()) * (kHostWidth + kGap) +
                                static_cast<double>(shape.racks.size()) * kGap);
  const double host_y = kTop + 110, height = host_y + kHostHeight + 40;
  std::string boxes, lines;
  double x = kGap;
  const bool racks = shape.racks.size() > 1;
  for (const NetworkShape::Rack& rack : shape.racks) {
    const double rack_width = static_cast<double>(rack.hosts.size()) * (kHostWidth + kGap) - kGap;
    const double middle = x + rack_width / 2;
    absl::StrAppend(&boxes, Box(middle - 60, kTop, 120, 32, racks ? "#fe9" : "#9cf"),
                    Words(middle, kTop + 21, racks ? rack.name : "switch", 14, true));
    if (racks) {
      absl::StrAppend(&lines,
                      Line(width / 2, 50, middle, kTop, std::max(rack.up, rack.down), most));
      absl::StrAppend(&boxes, Words(middle, kTop - 8, RateWords(rack.up, rack.down), 12));
    }
    for (const int h : rack.hosts) {
      const NetworkShape::Host& host = shape.hosts[static_cast<size_t>(h)];
      const double center = x + kHostWidth / 2;
      absl::StrAppend(&lines,
                      Line(middle, kTop + 32, center, host_y, std::max(host.out, host.in), most));
      absl::StrAppend(&boxes, Box(x, host_y, kHostWidth, kHostHeight, "#eef4fa"),
                      Words(center, host_y + 17, host.name, 13, true),
                      Words(center, host_y + 33, RateWords(host.out, host.in), 11),
                      Words(center, host_y + 47, Workers(host), 10));
      x += kHostWidth + kGap;
    }
    x += kGap;
  }
  if (racks) {
    absl::StrAppend(&boxes, Box(width / 2 - 60, 20, 120, 32, "#9cf"),
                    Words(width / 2, 41, "core", 14, true));
  }
  return absl::StrFormat(
      "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 %.0f %.0f' width='%.0f' height='%.0f' "
      "font-family='sans-serif'>\n<rect width='100%%' height='100%%' fill='white'/>\n%s%s</svg>\n",
      width, height, width, height, lines, boxes);
}

}  // namespace syncopate::probe
