#include "picture/network_layout.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

namespace syncopate::picture {
namespace {

constexpr size_t kDevicesInARowMax = 24;
constexpr double kMargin = 50, kDeviceSpacing = 84, kLayerHeightMin = 140, kLayerHeightMax = 240;
// Between what is drawn for neighbours: of a layer, of a ring, and of a ring that has links along
// and across it.
constexpr double kLayerGap = 30, kRingGap = 14, kMeshGap = 60;
constexpr double kRadiusMin = 190, kRadiusMax = 420, kRadiusPerDevice = 12;
// Between devices and the hosts that hold them, if these are all that is above devices.
constexpr double kHostDistance = 80;
// Rings are filled by so much at most, so that there is room to move their nodes apart.
constexpr double kRingFill = 0.85;

double HalfWidthOf(const Topology::Node& node) {
  const double letters = static_cast<double>(node.id.size());
  return node.kind == NodeKind::kDevice ? std::max(13.0, 2.8 * letters)
                                        : std::max(20.0, 3.5 * letters + 6);
}

// Which nodes a link joins, in either direction; each neighbour once, in order.
std::vector<std::vector<int>> NeighboursOf(const Topology& topology) {
  std::vector<std::vector<int>> neighbours(topology.nodes.size());
  for (const Topology::Link& link : topology.links) {
    neighbours[link.from].push_back(link.to);
    neighbours[link.to].push_back(link.from);
  }
  for (std::vector<int>& list : neighbours) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
  return neighbours;
}

std::vector<int> LevelsOf(const Topology& topology,
                          const std::vector<std::vector<int>>& neighbours) {
  std::vector<int> level(topology.nodes.size(), -1);
  std::vector<int> reached = Devices(topology);
  for (const int device : reached) level[device] = 0;
  for (size_t i = 0; i < reached.size(); ++i) {
    for (const int next : neighbours[reached[i]]) {
      if (level[next] >= 0) continue;
      level[next] = level[reached[i]] + 1;
      reached.push_back(next);
    }
  }
  for (int& each : level) each = std::max(each, 0);  // a node that no link touches
  return level;
}

class Layouter {
 public:
  explicit Layouter(const Topology& topology)
      : topology_(topology), neighbours_(NeighboursOf(topology)) {
    layout_.nodes.resize(topology.nodes.size());
    layout_.level = LevelsOf(topology, neighbours_);
    for (const Topology::Node& node : topology.nodes) {
      layout_.half_width.push_back(HalfWidthOf(node));
    }
    top_ = *std::max_element(layout_.level.begin(), layout_.level.end());
    by_level_.resize(top_ + 1);
    for (size_t node = 0; node < topology.nodes.size(); ++node) {
      by_level_[layout_.level[node]].push_back(static_cast<int>(node));
    }
    OrderDevices();
    hosts_above_ = top_ > 0 && std::all_of(by_level_[1].begin(), by_level_[1].end(), [&](int node) {
                     return topology.nodes[node].kind == NodeKind::kHost;
                   });
  }

  NetworkLayout Run() {
    layout_.circle = by_level_[0].size() > kDevicesInARowMax;
    for (const Topology::Link& link : topology_.links) {
      if (layout_.level[link.from] == layout_.level[link.to]) layout_.meshed = true;
    }
    layout_.circle = layout_.circle || layout_.meshed;
    if (layout_.circle) {
      PlaceInCircle();
    } else {
      PlaceInLayers();
    }
    return std::move(layout_);
  }

 private:
  // Those below the same node side by side.
  void OrderDevices() {
    std::vector<bool> seen(topology_.nodes.size(), false);
    std::vector<int> order;
    for (int level = top_; level >= 0; --level) {
      for (const int start : by_level_[level]) {
        std::vector<int> todo = {start};
        while (!todo.empty()) {
          const int node = todo.back();
          todo.pop_back();
          if (seen[node]) continue;
          seen[node] = true;
          if (layout_.level[node] == 0) order.push_back(node);
          for (auto next = neighbours_[node].rbegin(); next != neighbours_[node].rend(); ++next) {
            if (layout_.level[*next] < layout_.level[node]) todo.push_back(*next);
          }
        }
      }
    }
    by_level_[0] = std::move(order);
  }

  // The middle of what is joined to it from below.
  Point MiddleBelow(int node) const {
    Point sum;
    int count = 0;
    for (const int next : neighbours_[node]) {
      if (layout_.level[next] >= layout_.level[node]) continue;
      sum.x += layout_.nodes[next].x;
      sum.y += layout_.nodes[next].y;
      ++count;
    }
    if (count == 0) return {layout_.width / 2, layout_.height / 2};
    return {sum.x / count, sum.y / count};
  }

  // Wide enough for the names of the devices, and for the nodes right above them.
  double DeviceSpacing() const {
    double spacing = kDeviceSpacing;
    for (const int device : by_level_[0]) {
      spacing = std::max(spacing, 2 * layout_.half_width[device] + 10);
    }
    if (top_ == 0) return spacing;
    for (const int node : by_level_[1]) {
      double devices = 0;
      for (const int next : neighbours_[node]) devices += layout_.level[next] == 0 ? 1 : 0;
      spacing = std::max(spacing, (2 * layout_.half_width[node] + kLayerGap) / devices);
    }
    return spacing;
  }

  void PlaceInLayers() {
    const double devices = static_cast<double>(by_level_[0].size());
    const double spacing = DeviceSpacing();
    layout_.width = std::max(380.0, 2 * kMargin + spacing * (devices - 1));
    // Lines that are not too flat.
    const double layer = std::clamp(0.28 * layout_.width, kLayerHeightMin, kLayerHeightMax);
    const auto height_of = [&](int level) {
      return hosts_above_ && level > 0 ? kHostDistance + layer * (level - 1) : layer * level;
    };
    layout_.height = 2 * kMargin + height_of(top_);
    const double left = (layout_.width - spacing * (devices - 1)) / 2;
    for (size_t i = 0; i < by_level_[0].size(); ++i) {
      layout_.nodes[by_level_[0][i]] = {left + spacing * static_cast<double>(i),
                                        layout_.height - kMargin};
    }
    for (int level = 1; level <= top_; ++level) {
      std::vector<int>& nodes = by_level_[level];
      for (const int node : nodes) {
        layout_.nodes[node] = {MiddleBelow(node).x, layout_.height - kMargin - height_of(level)};
      }
      std::stable_sort(nodes.begin(), nodes.end(),
                       [&](int a, int b) { return layout_.nodes[a].x < layout_.nodes[b].x; });
      Spread(nodes);
    }
    FitWidth();
  }

  // Moves nodes of a layer apart where they would stand on one another.
  void Spread(const std::vector<int>& nodes) {
    double moved = 0;  // in all, to the right
    for (size_t i = 1; i < nodes.size(); ++i) {
      double& x = layout_.nodes[nodes[i]].x;
      const double least = layout_.nodes[nodes[i - 1]].x +
                           std::max(kDeviceSpacing, layout_.half_width[nodes[i - 1]] +
                                                        layout_.half_width[nodes[i]] + kLayerGap);
      if (x >= least) continue;
      moved += least - x;
      x = least;
    }
    for (const int node : nodes) layout_.nodes[node].x -= moved / static_cast<double>(nodes.size());
  }

  // Layers that were spread may be wider than the devices below them.
  void FitWidth() {
    double least = INFINITY, most = 0;
    for (size_t node = 0; node < layout_.nodes.size(); ++node) {
      least = std::min(least, layout_.nodes[node].x - layout_.half_width[node]);
      most = std::max(most, layout_.nodes[node].x + layout_.half_width[node]);
    }
    const double shift = std::max(0.0, kMargin / 2 - least);
    for (Point& at : layout_.nodes) at.x += shift;
    layout_.width = std::max(layout_.width, most + kMargin / 2) + shift;
  }

  bool HasLinksInside(int level) const {
    return std::any_of(
        topology_.links.begin(), topology_.links.end(), [&](const Topology::Link& link) {
          return layout_.level[link.from] == level && layout_.level[link.to] == level;
        });
  }

  double RingOf(double radius, int level) const {
    if (!hosts_above_) return radius * (1 - static_cast<double>(level) / (top_ + 1));
    return (radius - kHostDistance) * (1 - static_cast<double>(level - 1) / top_);
  }

  // So large that the nodes of each ring have room on it.
  double RadiusOfCircle() const {
    const double count = static_cast<double>(by_level_[0].size());
    double radius = std::clamp(kRadiusPerDevice * count, kRadiusMin, kRadiusMax);
    for (int level = 1; level <= top_; ++level) {
      if (by_level_[level].size() < 2) continue;
      double length = 0;
      for (const int node : by_level_[level]) {
        length += 2 * layout_.half_width[node] + RingGap(level);
      }
      const double needed = length / (2 * std::numbers::pi * kRingFill);
      while (RingOf(radius, level) < needed) radius *= 1.05;
    }
    return radius;
  }

  double RingGap(int level) const { return HasLinksInside(level) ? kMeshGap : kRingGap; }

  void PlaceInCircle() {
    const double count = static_cast<double>(by_level_[0].size());
    const double radius = RadiusOfCircle();
    double names = 0;
    for (const int device : by_level_[0]) names = std::max(names, 2 * layout_.half_width[device]);
    layout_.width = layout_.height = 2 * (radius + kMargin / 2 + std::max(kMargin, names));
    const double center = layout_.width / 2;
    for (size_t i = 0; i < by_level_[0].size(); ++i) {
      layout_.nodes[by_level_[0][i]] = OnCircle(center, radius, static_cast<double>(i) / count);
    }
    bool center_taken = false;
    for (int level = 1; level <= top_; ++level) {
      const double ring = RingOf(radius, level);
      std::vector<int> central;                   // joined to all sides
      std::vector<std::pair<double, int>> parts;  // of the circle, and nodes
      for (const int node : by_level_[level]) {
        const Point middle = MiddleBelow(node);
        const double x = middle.x - center, y = middle.y - center;
        if (std::hypot(x, y) < 0.15 * radius) {
          central.push_back(node);
        } else {
          parts.emplace_back(std::atan2(y, x) / (2 * std::numbers::pi) + 0.25, node);
        }
      }
      if (central.size() == 1 && !center_taken) {
        layout_.nodes[central[0]] = {center, center};
        center_taken = true;
        central.clear();
      }
      for (size_t i = 0; i < central.size(); ++i) {
        parts.emplace_back(static_cast<double>(i) / static_cast<double>(central.size()),
                           central[i]);
      }
      SpreadOnRing(2 * std::numbers::pi * ring, RingGap(level), parts);
      for (const auto& [part, node] : parts) layout_.nodes[node] = OnCircle(center, ring, part);
    }
  }

  // Moves nodes apart that would stand on one another on a ring of that length.
  void SpreadOnRing(double length, double gap, std::vector<std::pair<double, int>>& parts) const {
    constexpr int kRounds = 200;
    if (parts.size() < 2) return;
    std::stable_sort(parts.begin(), parts.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (int round = 0; round < kRounds; ++round) {
      for (size_t i = 0; i < parts.size(); ++i) {
        const bool wraps = i + 1 == parts.size();
        auto& [part, node] = parts[i];
        auto& [next_part, next] = parts[wraps ? 0 : i + 1];
        const double least = (layout_.half_width[node] + layout_.half_width[next] + gap) / length;
        const double lacks = least - (next_part + (wraps ? 1 : 0) - part);
        if (lacks <= 0) continue;
        part -= lacks / 2;
        next_part += lacks / 2;
      }
    }
  }

  static Point OnCircle(double center, double radius, double part) {
    const double angle = 2 * std::numbers::pi * (part - 0.25);
    return {center + radius * std::cos(angle), center + radius * std::sin(angle)};
  }

  const Topology& topology_;
  const std::vector<std::vector<int>> neighbours_;
  NetworkLayout layout_;
  int top_ = 0;               // the highest level
  bool hosts_above_ = false;  // all nodes of level 1 are hosts
  std::vector<std::vector<int>> by_level_;
};

}  // namespace

NetworkLayout LayOut(const Topology& topology) { return Layouter(topology).Run(); }

}  // namespace syncopate::picture
