#include "picture/network_layout.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

namespace syncopate::picture {
namespace {

constexpr size_t kDevicesInARowMax = 24;
constexpr double kMargin = 50, kDeviceSpacing = 84, kLayerHeightMin = 140, kLayerHeightMax = 240,
                 kLayerSpacing = 110;
constexpr double kRadiusMin = 190, kRadiusMax = 420, kRadiusPerDevice = 12;

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
    top_ = *std::max_element(layout_.level.begin(), layout_.level.end());
    by_level_.resize(top_ + 1);
    for (size_t node = 0; node < topology.nodes.size(); ++node) {
      by_level_[layout_.level[node]].push_back(static_cast<int>(node));
    }
    OrderDevices();
  }

  NetworkLayout Run() {
    layout_.circle = by_level_[0].size() > kDevicesInARowMax;
    for (const Topology::Link& link : topology_.links) {
      if (layout_.level[link.from] == layout_.level[link.to]) layout_.circle = true;
    }
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

  void PlaceInLayers() {
    const double devices = static_cast<double>(by_level_[0].size());
    layout_.width = std::max(380.0, 2 * kMargin + kDeviceSpacing * (devices - 1));
    for (int level = 1; level <= top_; ++level) {
      const double nodes = static_cast<double>(by_level_[level].size());
      layout_.width = std::max(layout_.width, 2 * kMargin + kLayerSpacing * (nodes - 1));
    }
    // Lines that are not too flat.
    const double layer = std::clamp(0.28 * layout_.width, kLayerHeightMin, kLayerHeightMax);
    layout_.height = 2 * kMargin + layer * top_;
    const double left = (layout_.width - kDeviceSpacing * (devices - 1)) / 2;
    for (size_t i = 0; i < by_level_[0].size(); ++i) {
      layout_.nodes[by_level_[0][i]] = {left + kDeviceSpacing * static_cast<double>(i),
                                        layout_.height - kMargin};
    }
    for (int level = 1; level <= top_; ++level) {
      std::vector<int>& nodes = by_level_[level];
      for (const int node : nodes) {
        layout_.nodes[node] = {MiddleBelow(node).x, layout_.height - kMargin - layer * level};
      }
      std::stable_sort(nodes.begin(), nodes.end(),
                       [&](int a, int b) { return layout_.nodes[a].x < layout_.nodes[b].x; });
      Spread(nodes);
    }
  }

  // Moves nodes of a layer apart where they would stand on one another.
  void Spread(const std::vector<int>& nodes) {
    double moved = 0;  // in all, to the right
    for (size_t i = 1; i < nodes.size(); ++i) {
      double& x = layout_.nodes[nodes[i]].x;
      const double least = layout_.nodes[nodes[i - 1]].x + kLayerSpacing;
      if (x >= least) continue;
      moved += least - x;
      x = least;
    }
    for (const int node : nodes) layout_.nodes[node].x -= moved / static_cast<double>(nodes.size());
  }

  void PlaceInCircle() {
    const double count = static_cast<double>(by_level_[0].size());
    const double radius = std::clamp(kRadiusPerDevice * count, kRadiusMin, kRadiusMax);
    layout_.width = layout_.height = 2 * (radius + kMargin + 20);
    const double center = layout_.width / 2;
    for (size_t i = 0; i < by_level_[0].size(); ++i) {
      layout_.nodes[by_level_[0][i]] = OnCircle(center, radius, static_cast<double>(i) / count);
    }
    for (int level = 1; level <= top_; ++level) {
      const double ring = radius * (1 - static_cast<double>(level) / (top_ + 1));
      std::vector<int> central;  // joined to all sides
      for (const int node : by_level_[level]) {
        const Point middle = MiddleBelow(node);
        const double x = middle.x - center, y = middle.y - center;
        const double length = std::hypot(x, y);
        if (length < 0.15 * radius) {
          central.push_back(node);
        } else {
          layout_.nodes[node] = {center + x / length * ring, center + y / length * ring};
        }
      }
      for (size_t i = 0; i < central.size(); ++i) {
        layout_.nodes[central[i]] =
            OnCircle(center, central.size() == 1 ? 0 : ring,
                     static_cast<double>(i) / static_cast<double>(central.size()));
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
  int top_ = 0;  // the highest level
  std::vector<std::vector<int>> by_level_;
};

}  // namespace

NetworkLayout LayOut(const Topology& topology) { return Layouter(topology).Run(); }

}  // namespace syncopate::picture
