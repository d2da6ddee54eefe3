#include "picture/network_drawing.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/units.h"
#include "picture/chart_parts.h"

namespace syncopate::picture {
namespace {

constexpr const char* kEdgeColour = "#445";
constexpr double kBoxHeight = 24, kDeviceRadius = 13, kLabelGap = 5;

// Between a device and the machine that holds it: through memory, and so much faster than any
// network that these links must not set the scale.
bool InsideHost(const Topology& topology, const Topology::Link& link) {
  return topology.nodes[link.from].host == link.to || topology.nodes[link.to].host == link.from;
}

// Where links cross one another, this many labels can still be read.
constexpr size_t kLabelsMaxMeshed = 20;

}  // namespace

NetworkDrawing::NetworkDrawing(const Topology& topology, const NetworkMarks& marks)
    : topology_(topology), marks_(marks), layout_(LayOut(topology)) {
  for (const Topology::Link& link : topology.links) {
    if (!InsideHost(topology, link)) rate_most_ = std::max(rate_most_, link.bandwidth);
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
  if (InsideHost(topology_, link)) return 1.5;
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
  size_t unlabelled = 0;
  if (labels > marks_.labels_max) unlabelled = labels - marks_.labels_max / 2;
  // Where nodes of a level are joined directly, labels would lie on one another.
  if (layout_.meshed && labels > kLabelsMaxMeshed) unlabelled = labels;
  std::map<std::pair<int, int>, int> drawn;  // how many lie between two nodes already
  SvgPicture words;                          // above all lines
  size_t seen = 0;                           // of the labels
  for (const size_t index : order) {
    const Topology::Link& link = topology_.links[index];
    const bool labelled = !marks_.links[index].label.empty() && seen++ >= unlabelled;
    DrawLink(index, drawn[{link.from, link.to}]++, labelled ? &words : nullptr, svg);
  }
  svg.Add(words);
}

// How far what is drawn for `node` reaches along a line in a direction that passes its middle at
// the distance `away`.
double NetworkDrawing::ReachOf(int node, double dx, double dy, double away) const {
  if (topology_.nodes[node].kind == NodeKind::kDevice) return kDeviceRadius;
  dx = std::max(std::abs(dx), 1e-9);
  dy = std::max(std::abs(dy), 1e-9);
  return std::min((layout_.half_width[node] + away * dy) / dx, (kBoxHeight / 2 + away * dx) / dy);
}

// Each direction on its right-hand side. `labels`: where the label goes; null: it has none.
void NetworkDrawing::DrawLink(size_t index, int before, SvgPicture* labels, SvgPicture& svg) const {
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
  if (labels == nullptr) return;
  SvgWords style{.size = marks_.label_size, .anchor = "middle", .halo = true};
  style.turned = std::atan2(dy, dx) * 180 / std::numbers::pi;
  const bool upside_down = style.turned > 90 || style.turned <= -90;
  if (upside_down) style.turned += style.turned > 90 ? -180 : 180;
  // Near the end where fewer lines meet, or that it comes from.
  const bool falls = layout_.level[link.to] < layout_.level[link.from];
  const double half = TextWidth(mark.label) * marks_.label_size / 12 / 2 + kLabelGap;
  const double away = shift + width / 2 + marks_.label_size;  // its outer edge
  const double least = ReachOf(link.from, dx, dy, away) + half;
  const double most = length - ReachOf(link.to, dx, dy, away) - half;
  if (least > most) return;  // it would lie under the nodes
  const double along = std::clamp(length * (falls ? 0.73 : 0.27), least, most);
  const Point words = beside(along, shift + width / 2 + (upside_down ? 2 : marks_.label_size));
  labels->Words(words.x, words.y, mark.label, style);
}

void NetworkDrawing::DrawNodes(SvgPicture& svg) const {
  const double devices = static_cast<double>(Devices(topology_).size());
  const bool small = devices > 32;
  // So that those of a circle do not touch.
  const double radius = std::min(small ? 8.0 : kDeviceRadius, 1.2 * layout_.width / devices);
  for (size_t node = 0; node < topology_.nodes.size(); ++node) {
    const Topology::Node& each = topology_.nodes[node];
    const Point at = At(static_cast<int>(node));
    if (each.kind != NodeKind::kDevice) {
      const double half = layout_.half_width[node];
      svg.Box(at.x - half, at.y - kBoxHeight / 2, 2 * half, kBoxHeight,
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
    NameDevice(static_cast<int>(node), svg);
  }
}

// Below the device, or in a circle beside it, away from the middle.
void NetworkDrawing::NameDevice(int node, SvgPicture& svg) const {
  const Point at = At(node);
  SvgWords style{.size = 10, .anchor = "middle"};
  if (!layout_.circle) {
    svg.Words(at.x, at.y + 27, topology_.nodes[node].id, style);
    return;
  }
  const double x = at.x - left_ - layout_.width / 2, y = at.y - top_ - layout_.height / 2;
  const double length = std::max(1.0, std::hypot(x, y));
  if (std::abs(x) > 0.3 * length) style.anchor = x > 0 ? "start" : "end";
  svg.Words(at.x + (kDeviceRadius + 5) * x / length, at.y + 22 * y / length + 4,
            topology_.nodes[node].id, style);
}

std::string DrawNetwork(const Topology& topology) {
  NetworkMarks marks;
  marks.labels_max = 400;  // rates are short
  marks.label_size = 9;
  for (const Topology::Link& link : topology.links) {
    const bool inside = InsideHost(topology, link);
    marks.links.push_back({inside ? "#b0bac5" : "#78a", inside ? "" : FormatRate(link.bandwidth),
                           absl::StrCat("link ", link.id, ": ", FormatRate(link.bandwidth),
                                        ", latency ", FormatSeconds(link.latency)),
                           inside ? 0.0 : 1.0});
  }
  marks.devices.resize(topology.nodes.size());
  const std::vector<int> devices = Devices(topology);
  for (size_t i = 0; i < devices.size(); ++i) {
    marks.devices[devices[i]] = {"#fbe7a1", absl::StrCat(i),
                                 absl::StrCat("device ", topology.nodes[devices[i]].id)};
  }
  NetworkDrawing drawing(topology, marks);
  SvgPicture svg;
  drawing.Draw(0, 0, svg);
  svg.Words(16, drawing.height() + 12,
            "Wider lines carry more. Traffic keeps to the right-hand side of its way.",
            {.size = 11, .fill = "#556"});
  return svg.Finish(std::max(drawing.width(), 440.0), drawing.height() + 28);
}

}  // namespace syncopate::picture
