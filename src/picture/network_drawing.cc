#include "picture/network_drawing.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <numeric>
#include <utility>

namespace syncopate::picture {
namespace {

constexpr const char* kEdgeColour = "#445";

bool SameLevel(const NetworkLayout& layout, const Topology::Link& link) {
  return layout.level[link.from] == layout.level[link.to];
}

}  // namespace

NetworkDrawing::NetworkDrawing(const Topology& topology, const NetworkMarks& marks)
    : topology_(topology), marks_(marks), layout_(LayOut(topology)) {
  for (const Topology::Link& link : topology.links) {
    rate_most_ = std::max(rate_most_, link.bandwidth);
  }
}

void NetworkDrawing::Draw(double left, double top, SvgPicture& svg) {
  left_ = left;
  top_ = top;
  DrawLinks(svg);
  DrawNodes(svg);
}

Point NetworkDrawing::At(int node) const {
  return {left_ + layout_.nodes[node].x, top_ + layout_.nodes[node].y};
}

// The wider the line, the more it can carry.
double NetworkDrawing::LineWidth(const Topology::Link& link) const {
  return 1 + 4 * std::sqrt(link.bandwidth / rate_most_);
}

void NetworkDrawing::DrawLinks(SvgPicture& svg) const {
  std::vector<size_t> order(topology_.links.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::lround(marks_.links[a].weight * 1e6) < std::lround(marks_.links[b].weight * 1e6);
  });
  size_t labels = 0;
  for (const NetworkMarks::Link& link : marks_.links) labels += link.label.empty() ? 0 : 1;
  // Where nodes of a level are joined directly, labels would lie on one another.
  const bool meshed =
      std::any_of(topology_.links.begin(), topology_.links.end(),
                  [&](const Topology::Link& link) { return SameLevel(layout_, link); });
  size_t unlabelled = 0;
  if (labels > marks_.labels_max) unlabelled = labels - (meshed ? 0 : marks_.labels_max / 2);
  std::map<std::pair<int, int>, int> drawn;  // how many lie between two nodes already
  size_t seen = 0;                           // of the labels
  for (const size_t index : order) {
    const Topology::Link& link = topology_.links[index];
    const bool labelled = !marks_.links[index].label.empty() && seen++ >= unlabelled;
    DrawLink(index, drawn[{link.from, link.to}]++, labelled, svg);
  }
}

// Each direction on its right-hand side.
void NetworkDrawing::DrawLink(size_t index, int before, bool labelled, SvgPicture& svg) const {
  const Topology::Link& link = topology_.links[index];
  const NetworkMarks::Link& mark = marks_.links[index];
  const Point from = At(link.from), to = At(link.to);
  const double length = std::hypot(to.x - from.x, to.y - from.y);
  if (length < 1) return;
  const double dx = (to.x - from.x) / length, dy = (to.y - from.y) / length;
  const double width = LineWidth(link);
  const double shift = 3.5 + 7 * before;
  const auto beside = [&](double along, double away) {
    return Point{from.x + dx * along - dy * away, from.y + dy * along + dx * away};
  };
  const Point begin = beside(0, shift), end = beside(length, shift);
  svg.Line(begin.x, begin.y, end.x, end.y, mark.ink, width, mark.title);
  if (!labelled) return;
  SvgWords style{.size = marks_.label_size, .anchor = "middle"};
  style.turned = std::atan2(dy, dx) * 180 / std::numbers::pi;
  const bool upside_down = style.turned > 90 || style.turned <= -90;
  if (upside_down) style.turned += style.turned > 90 ? -180 : 180;
  // Near the end where fewer lines meet.
  const bool from_below = layout_.level[link.from] <= layout_.level[link.to];
  const Point words = beside(length * (from_below ? 0.38 : 0.62),
                             shift + width / 2 + (upside_down ? 2 : marks_.label_size));
  svg.Words(words.x, words.y, mark.label, style);
}

void NetworkDrawing::DrawNodes(SvgPicture& svg) const {
  const double devices = static_cast<double>(Devices(topology_).size());
  const bool small = devices > 32;
  // So that those of a circle do not touch.
  const double radius = std::min(small ? 8.0 : 13.0, 1.2 * layout_.width / devices);
  for (size_t node = 0; node < topology_.nodes.size(); ++node) {
    const Topology::Node& each = topology_.nodes[node];
    const Point at = At(static_cast<int>(node));
    if (each.kind != NodeKind::kDevice) {
      const double half = std::max(20.0, 3.3 * static_cast<double>(each.id.size()) + 5);
      svg.Box(at.x - half, at.y - 12, 2 * half, 24,
              each.kind == NodeKind::kHost ? "#eef4fa" : "#cfe3f7", kEdgeColour, 5);
      svg.Words(at.x, at.y + 4, each.id, {.size = 11, .anchor = "middle", .bold = true});
      continue;
    }
    const NetworkMarks::Device& mark = marks_.devices[node];
    svg.Circle(at.x, at.y, radius, mark.fill, kEdgeColour, mark.title);
    if (radius > 6) {
      svg.Words(at.x, at.y + (small ? 3 : 4), mark.words,
                {.size = small ? 8 : 11, .anchor = "middle", .bold = true});
    }
    if (small) continue;
    const Point words = layout_.circle ? Outside(at) : Point{at.x, at.y + 27};
    svg.Words(words.x, words.y, each.id, {.size = 10, .anchor = "middle"});
  }
}

// Beside a device of a circle, away from its middle.
Point NetworkDrawing::Outside(Point at) const {
  const double x = at.x - left_ - layout_.width / 2, y = at.y - top_ - layout_.height / 2;
  const double length = std::max(1.0, std::hypot(x, y));
  return {at.x + 32 * x / length, at.y + 24 * y / length + 4};
}

}  // namespace syncopate::picture
