#include "tools/plan_picture.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/units.h"
#include "picture/network_layout.h"
#include "picture/svg.h"

namespace syncopate::tools {
namespace {

constexpr double kMargin = 24, kTop = 84;
constexpr size_t kLabelledLinks = 40, kPartsListed = 16, kTreesDrawn = 12;
constexpr double kPartHeight = 17, kPartBar = 120;
constexpr double kCellWidth = 320, kCellHeight = 190, kCellTop = 44;
constexpr size_t kTreeColumns = 2;
constexpr const char *kLineColour = "#445", *kReduceColour = "#1b6ca8",
                     *kBroadcastColour = "#e07b39";

std::string PercentText(double part) { return absl::StrFormat("%.0f %%", 100 * part); }

// From grey over yellow to red.
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

class NetworkDrawing {
 public:
  NetworkDrawing(const Topology& topology, const PlanPicture& picture, picture::SvgPicture& svg)
      : topology_(topology), picture_(picture), layout_(picture::LayOut(topology)), svg_(svg) {
    double most = 0;
    for (const Topology::Link& link : topology.links) most = std::max(most, link.bandwidth);
    rate_most_ = most;
  }

  double width() const { return std::max(layout_.width, 460.0); }

  // Returns where it ends.
  double Draw(double left, double top) {
    left_ = left + (width() - layout_.width) / 2;
    top_ = top;
    DrawLinks();
    DrawNodes();
    return ListParts(left, top + layout_.height + 10);
  }

 private:
  picture::Point At(int node) const {
    return {left_ + layout_.nodes[node].x, top_ + layout_.nodes[node].y};
  }

  // Of the link itself or of the busiest capacity that it draws on.
  double BusyOf(size_t link) const {
    double busy = picture_.links[link];
    for (const int capacity : topology_.links[link].capacities) {
      busy = std::max(busy, picture_.capacities[capacity]);
    }
    return busy;
  }

  std::string TitleOf(size_t index) const {
    const Topology::Link& link = topology_.links[index];
    std::string title = absl::StrCat("link ", link.id, ": ", FormatRate(link.bandwidth), ", busy ",
                                     PercentText(picture_.links[index]));
    for (const int capacity : link.capacities) {
      absl::StrAppend(&title, "; capacity ", topology_.capacities[capacity].id, ": ",
                      FormatRate(topology_.capacities[capacity].bandwidth), ", busy ",
                      PercentText(picture_.capacities[capacity]));
    }
    return title;
  }

  // The wider the line, the more it can carry.
  double WidthOf(const Topology::Link& link) const {
    return 1 + 4 * std::sqrt(link.bandwidth / rate_most_);
  }

  void DrawLinks() {
    std::vector<size_t> order(topology_.links.size());
    std::iota(order.begin(), order.end(), size_t{0});
    // The busiest lie on top, and are labelled if not all can be.
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return std::lround(BusyOf(a) * 1e6) < std::lround(BusyOf(b) * 1e6);
    });
    std::map<std::pair<int, int>, int> drawn;  // how many lie between two nodes already
    // Where devices are joined directly, labels would lie on one another.
    const bool few = order.size() <= kLabelledLinks;
    const bool meshed = std::any_of(order.begin(), order.end(), [&](size_t link) {
      return layout_.level[topology_.links[link].from] == layout_.level[topology_.links[link].to];
    });
    const size_t unlabelled = few ? 0 : order.size() - (meshed ? 0 : kLabelledLinks / 2);
    for (size_t i = 0; i < order.size(); ++i) {
      const Topology::Link& link = topology_.links[order[i]];
      DrawLink(order[i], drawn[{link.from, link.to}]++, i >= unlabelled);
    }
  }

  // Each direction on its right-hand side.
  void DrawLink(size_t index, int before, bool labelled) {
    const Topology::Link& link = topology_.links[index];
    const picture::Point from = At(link.from), to = At(link.to);
    const double length = std::hypot(to.x - from.x, to.y - from.y);
    if (length < 1) return;
    const double dx = (to.x - from.x) / length, dy = (to.y - from.y) / length;
    const double width = WidthOf(link);
    const double shift = 3.5 + 7 * before;
    const auto beside = [&](double along, double away) {
      return picture::Point{from.x + dx * along - dy * away, from.y + dy * along + dx * away};
    };
    const picture::Point begin = beside(0, shift), end = beside(length, shift);
    svg_.Line(begin.x, begin.y, end.x, end.y, ColourOf(BusyOf(index)), width, TitleOf(index));
    if (!labelled) return;
    picture::SvgWords style{.size = 8, .anchor = "middle"};
    style.turned = std::atan2(dy, dx) * 180 / std::numbers::pi;
    const bool upside_down = style.turned > 90 || style.turned <= -90;
    if (upside_down) style.turned += style.turned > 90 ? -180 : 180;
    // Near the end where fewer lines meet.
    const bool from_below = layout_.level[link.from] <= layout_.level[link.to];
    const picture::Point words =
        beside(length * (from_below ? 0.38 : 0.62), shift + width / 2 + (upside_down ? 2 : 8));
    svg_.Words(words.x, words.y, absl::StrCat(link.id, " ", PercentText(BusyOf(index))), style);
  }

  void DrawNodes() {
    const double devices = static_cast<double>(Devices(topology_).size());
    const bool small = devices > 32;
    // So that those of a circle do not touch.
    const double radius = std::min(small ? 8.0 : 13.0, 1.2 * layout_.width / devices);
    std::vector<std::vector<int>> ranks(topology_.nodes.size());
    for (size_t rank = 0; rank < picture_.placement.size(); ++rank) {
      ranks[picture_.placement[rank]].push_back(static_cast<int>(rank));
    }
    for (size_t node = 0; node < topology_.nodes.size(); ++node) {
      const Topology::Node& each = topology_.nodes[node];
      const picture::Point at = At(static_cast<int>(node));
      if (each.kind != NodeKind::kDevice) {
        const double half = std::max(20.0, 3.3 * static_cast<double>(each.id.size()) + 5);
        svg_.Box(at.x - half, at.y - 12, 2 * half, 24,
                 each.kind == NodeKind::kHost ? "#eef4fa" : "#cfe3f7", kLineColour, 5);
        svg_.Words(at.x, at.y + 4, each.id, {.size = 11, .anchor = "middle", .bold = true});
        continue;
      }
      const std::vector<int>& here = ranks[node];
      const bool active = std::any_of(here.begin(), here.end(), [&](int rank) {
        return std::binary_search(picture_.active.begin(), picture_.active.end(), rank);
      });
      svg_.Circle(at.x, at.y, radius, active ? "#fbe7a1" : "#ffffff", kLineColour,
                  absl::StrCat("device ", each.id,
                               here.empty() ? ", no worker"
                               : active     ? ""
                                            : ", not active"));
      if (!here.empty() && radius > 6) {
        svg_.Words(at.x, at.y + (small ? 3 : 4),
                   here.size() == 1 ? absl::StrCat(here[0]) : absl::StrCat(here[0], "+"),
                   {.size = small ? 8 : 11, .anchor = "middle", .bold = true});
      }
      if (small) continue;
      const picture::Point words = layout_.circle ? Outside(at) : picture::Point{at.x, at.y + 27};
      svg_.Words(words.x, words.y, each.id, {.size = 10, .anchor = "middle"});
    }
  }

  // Beside a device of a circle, away from its middle.
  picture::Point Outside(picture::Point at) const {
    const double x = at.x - left_ - layout_.width / 2, y = at.y - top_ - layout_.height / 2;
    const double length = std::max(1.0, std::hypot(x, y));
    return {at.x + 32 * x / length, at.y + 24 * y / length + 4};
  }

  double ListParts(double left, double top) {
    std::vector<std::pair<double, std::string>> parts;
    for (size_t i = 0; i < topology_.capacities.size(); ++i) {
      parts.emplace_back(picture_.capacities[i],
                         absl::StrCat("capacity ", topology_.capacities[i].id, ", ",
                                      FormatRate(topology_.capacities[i].bandwidth)));
    }
    for (size_t i = 0; i < topology_.links.size(); ++i) {
      parts.emplace_back(picture_.links[i], absl::StrCat("link ", topology_.links[i].id, ", ",
                                                         FormatRate(topology_.links[i].bandwidth)));
    }
    std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) {
      return std::lround(a.first * 1e6) > std::lround(b.first * 1e6);
    });
    svg_.Words(left, top + 14, "Busiest parts", {.size = 13, .bold = true});
    double y = top + 24;
    for (size_t i = 0; i < std::min(kPartsListed, parts.size()); ++i, y += kPartHeight) {
      const auto& [busy, name] = parts[i];
      svg_.Box(left, y, kPartBar, kPartHeight - 5, "#eef1f4");
      svg_.Box(left, y, kPartBar * std::clamp(busy, 0.0, 1.0), kPartHeight - 5, ColourOf(busy));
      svg_.Words(left + kPartBar + 40, y + 10, PercentText(busy), {.size = 11, .anchor = "end"});
      svg_.Words(left + kPartBar + 48, y + 10, name, {.size = 11});
    }
    return y;
  }

  const Topology& topology_;
  const PlanPicture& picture_;
  const picture::NetworkLayout layout_;
  picture::SvgPicture& svg_;
  double rate_most_ = 1;
  double left_ = 0, top_ = 0;
};

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
    svg_.Circle(at.x, at.y, radius, active ? "#fbe7a1" : "#ffffff", kLineColour,
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
  NetworkDrawing network(topology, picture, svg);
  double bottom = network.Draw(kMargin, kTop);
  double right = kMargin + network.width();
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
