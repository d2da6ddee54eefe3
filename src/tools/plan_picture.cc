#include "tools/plan_picture.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/units.h"
#include "picture/network_drawing.h"
#include "picture/svg.h"

namespace syncopate::tools {
namespace {

constexpr double kMargin = 24, kTop = 84, kNetworkWidthMin = 460;
constexpr size_t kPartsListed = 16, kTreesDrawn = 12;
constexpr double kPartHeight = 17, kPartBar = 120;
constexpr double kCellWidth = 320, kCellHeight = 190, kCellTop = 44;
constexpr size_t kTreeColumns = 2;
constexpr const char *kLineColour = "#445", *kReduceColour = "#1b6ca8",
                     *kBroadcastColour = "#e07b39", *kActiveColour = "#fbe7a1",
                     *kOtherColour = "#ffffff";

std::string PercentText(double part) { return absl::StrFormat("%.0f %%", 100 * part); }

// The colour of a part by how busy it is, from grey over yellow to red.
std::string ColourOf(double utilisation) {
  struct Colour {
    double red, green, blue;
  };
  constexpr Colour kIdle = {176, 186, 197}, kHalf = {233, 187, 60}, kFull = {200, 30, 45};
  const double part = std::clamp(utilisation, 0.0, 1.0);
  const Colour& low = part < 0.5 ? kIdle : kHalf;
  const Colour& high = part < 0.5 ? kHalf : kFull;
  const double way = part < 0.5 ? 2 * part : 2 * part - 1;
  const auto mix = [&](double a, double b) {
    return static_cast<int>(std::lround(a + way * (b - a)));
  };
  return absl::StrFormat("#%02x%02x%02x", mix(low.red, high.red), mix(low.green, high.green),
                         mix(low.blue, high.blue));
}

// Of the link itself or of the busiest capacity that it draws on.
double BusyOf(const Topology& topology, const PlanPicture& picture, size_t link) {
  double busy = picture.links[link];
  for (const int capacity : topology.links[link].capacities) {
    busy = std::max(busy, picture.capacities[capacity]);
  }
  return busy;
}

std::string TitleOf(const Topology& topology, const PlanPicture& picture, size_t index) {
  const Topology::Link& link = topology.links[index];
  std::string title = absl::StrCat("link ", link.id, ": ", FormatRate(link.bandwidth), ", busy ",
                                   PercentText(picture.links[index]));
  for (const int capacity : link.capacities) {
    absl::StrAppend(&title, "; capacity ", topology.capacities[capacity].id, ": ",
                    FormatRate(topology.capacities[capacity].bandwidth), ", busy ",
                    PercentText(picture.capacities[capacity]));
  }
  return title;
}

// Links are coloured by how busy they are, devices by whether their workers are active.
picture::NetworkMarks MarksOf(const Topology& topology, const PlanPicture& picture) {
  picture::NetworkMarks marks;
  for (size_t i = 0; i < topology.links.size(); ++i) {
    const double busy = BusyOf(topology, picture, i);
    marks.links.push_back({ColourOf(busy),
                           absl::StrCat(topology.links[i].id, " ", PercentText(busy)),
                           TitleOf(topology, picture, i), busy});
  }
  std::vector<std::vector<int>> ranks(topology.nodes.size());
  for (size_t rank = 0; rank < picture.placement.size(); ++rank) {
    ranks[picture.placement[rank]].push_back(static_cast<int>(rank));
  }
  for (size_t node = 0; node < topology.nodes.size(); ++node) {
    const std::vector<int>& here = ranks[node];
    const bool active = std::any_of(here.begin(), here.end(), [&](int rank) {
      return std::binary_search(picture.active.begin(), picture.active.end(), rank);
    });
    const std::string words = here.empty() ? "" : absl::StrCat(here[0], here.size() > 1 ? "+" : "");
    marks.devices.push_back({active ? kActiveColour : kOtherColour, words,
                             absl::StrCat("device ", topology.nodes[node].id,
                                          here.empty() ? ", no worker"
                                          : active     ? ""
                                                       : ", not active")});
  }
  return marks;
}

// Returns where the list ends.
double ListParts(const Topology& topology, const PlanPicture& picture, double left, double top,
                 picture::SvgPicture& svg) {
  std::vector<std::pair<double, std::string>> parts;
  for (size_t i = 0; i < topology.capacities.size(); ++i) {
    parts.emplace_back(picture.capacities[i],
                       absl::StrCat("capacity ", topology.capacities[i].id, ", ",
                                    FormatRate(topology.capacities[i].bandwidth)));
  }
  for (size_t i = 0; i < topology.links.size(); ++i) {
    parts.emplace_back(picture.links[i], absl::StrCat("link ", topology.links[i].id, ", ",
                                                      FormatRate(topology.links[i].bandwidth)));
  }
  std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) {
    return std::lround(a.first * 1e6) > std::lround(b.first * 1e6);
  });
  svg.Words(left, top + 14, "Busiest parts", {.size = 13, .bold = true});
  double y = top + 24;
  for (size_t i = 0; i < std::min(kPartsListed, parts.size()); ++i, y += kPartHeight) {
    const auto& [busy, name] = parts[i];
    svg.Box(left, y, kPartBar, kPartHeight - 5, "#eef1f4");
    svg.Box(left, y, kPartBar * std::clamp(busy, 0.0, 1.0), kPartHeight - 5, ColourOf(busy));
    svg.Words(left + kPartBar + 40, y + 10, PercentText(busy), {.size = 11, .anchor = "end"});
    svg.Words(left + kPartBar + 48, y + 10, name, {.size = 11});
  }
  return y;
}

// One tree in a box, its root at the top.
class TreeDrawing {
 public:
  TreeDrawing(const plan::WorkerTree& tree, const std::vector<int>& active,
              picture::SvgPicture& svg)
      : tree_(tree),
        active_(active),
        svg_(svg),
        children_(tree.parent.size()),
        at_(tree.parent.size()) {
    for (const auto& [parent, child] : plan::EdgesFromRoot(tree))
      children_[parent].push_back(child);
    Place(tree.root, 0);
  }

  void Draw(double left, double top, double width, double height, const char* colour) {
    const double spacing = width / std::max(1.0, leaves_);
    const double radius = std::clamp(0.42 * spacing, 1.5, 9.0);
    const double layer = (height - 2 * radius) / std::max(1, plan::DepthOf(tree_));
    const auto point = [&](int worker) {
      return picture::Point{left + at_[worker].x * spacing, top + radius + at_[worker].y * layer};
    };
    const auto edges = plan::EdgesFromRoot(tree_);
    for (const auto& [parent, child] : edges) {
      const picture::Point a = point(parent), b = point(child);
      svg_.Line(a.x, a.y, b.x, b.y, colour, radius < 4 ? 0.7 : 1.3);
    }
    DrawWorker(tree_.root, point(tree_.root), radius);
    for (const auto& [parent, child] : edges) DrawWorker(child, point(child), radius);
  }

 private:
  // x counts leaves, y layers.
  void Place(int worker, int depth) {
    if (children_[worker].empty()) {
      at_[worker] = {leaves_ + 0.5, static_cast<double>(depth)};
      leaves_ += 1;
      return;
    }
    for (const int child : children_[worker]) Place(child, depth + 1);
    at_[worker] = {(at_[children_[worker].front()].x + at_[children_[worker].back()].x) / 2,
                   static_cast<double>(depth)};
  }

  void DrawWorker(int worker, picture::Point at, double radius) {
    const bool active = std::binary_search(active_.begin(), active_.end(), worker);
    svg_.Circle(at.x, at.y, radius, active ? kActiveColour : kOtherColour, kLineColour,
                absl::StrCat("worker ", worker, active ? "" : ", relays"));
    if (radius < 5.5) return;
    svg_.Words(at.x, at.y + 3, absl::StrCat(worker), {.size = 9, .anchor = "middle"});
  }

  const plan::WorkerTree& tree_;
  const std::vector<int>& active_;
  picture::SvgPicture& svg_;
  std::vector<std::vector<int>> children_;
  std::vector<picture::Point> at_;
  double leaves_ = 0;
};

void DrawPair(const plan::TreePair& pair, const std::vector<int>& active, double left, double top,
              picture::SvgPicture& svg) {
  svg.Box(left, top, kCellWidth - 12, kCellHeight - 12, "#fbfcfd", "#ccd3da", 6);
  svg.Words(left + 10, top + 18,
            absl::StrFormat("%.2f %% of the bytes, root %d", 100 * pair.share, pair.reduce.root),
            {.size = 12, .bold = true});
  const double width = kCellWidth - 32, height = kCellHeight - kCellTop - 24;
  if (pair.reduce == pair.broadcast) {
    svg.Words(left + 10, top + 34, "reduce and broadcast", {.size = 10, .fill = kReduceColour});
    TreeDrawing(pair.reduce, active, svg)
        .Draw(left + 10, top + kCellTop, width, height, kReduceColour);
    return;
  }
  const double half = (width - 16) / 2;
  svg.Words(left + 10, top + 34, "reduce", {.size = 10, .fill = kReduceColour});
  TreeDrawing(pair.reduce, active, svg)
      .Draw(left + 10, top + kCellTop, half, height, kReduceColour);
  const double right = left + 10 + half + 16;
  svg.Words(right, top + 34, "broadcast", {.size = 10, .fill = kBroadcastColour});
  TreeDrawing(pair.broadcast, active, svg)
      .Draw(right, top + kCellTop, half, height, kBroadcastColour);
}

void DrawLegend(double left, double y, picture::SvgPicture& svg) {
  svg.Words(left, y + 10, "busy", {.size = 11});
  constexpr int kSteps = 5;
  for (int i = 0; i < kSteps; ++i) {
    const double part = static_cast<double>(i) / (kSteps - 1);
    svg.Box(left + 34 + 62 * i, y, 20, 12, ColourOf(part));
    svg.Words(left + 58 + 62 * i, y + 10, PercentText(part), {.size = 11});
  }
  svg.Words(left + 350, y + 10, "wider lines carry more", {.size = 11});
}

}  // namespace

std::string DrawPlan(const Topology& topology, const PlanPicture& picture) {
  picture::SvgPicture svg;
  svg.Words(kMargin, 32, picture.title, {.size = 17, .bold = true});
  DrawLegend(kMargin, 48, svg);
  const picture::NetworkMarks marks = MarksOf(topology, picture);
  picture::NetworkDrawing network(topology, marks);
  const double width = std::max(network.width(), kNetworkWidthMin);
  network.Draw(kMargin + (width - network.width()) / 2, kTop, svg);
  double bottom = ListParts(topology, picture, kMargin, kTop + network.height() + 10, svg);
  double right = kMargin + width;
  if (!picture.pairs.empty()) {
    const double left = right + kMargin;
    const size_t shown = std::min(kTreesDrawn, picture.pairs.size());
    svg.Words(left, kTop - 12,
              shown == picture.pairs.size()
                  ? absl::StrCat("Trees (", shown, ")")
                  : absl::StrCat("The ", shown, " largest of ", picture.pairs.size(), " trees"),
              {.size = 13, .bold = true});
    for (size_t i = 0; i < shown; ++i) {
      const double x = left + kCellWidth * static_cast<double>(i % kTreeColumns);
      const double y = kTop + kCellHeight * static_cast<double>(i / kTreeColumns);
      DrawPair(picture.pairs[i], picture.active, x, y, svg);
      bottom = std::max(bottom, y + kCellHeight);
    }
    right = left + kCellWidth * static_cast<double>(kTreeColumns);
  }
  const double title = 10 * static_cast<double>(picture.title.size());
  return svg.Finish(std::max(right, title) + kMargin, bottom + kMargin);
}

}  // namespace syncopate::tools
