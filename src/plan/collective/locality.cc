#include "plan/collective/locality.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace syncopate::plan {
namespace {

using Path = std::vector<std::string>;

Path PlaceOf(const Topology& topology, absl::Span<const int> placement, int worker) {
  const Topology::Node& device = topology.nodes[placement[worker]];
  std::string group = device.group;
  if (group.empty() && device.host >= 0) group = topology.nodes[device.host].group;
  Path path = absl::StrSplit(group, '/', absl::SkipEmpty());
  if (device.host >= 0) path.push_back(topology.nodes[device.host].id);
  // A worker of which nothing is known stands alone. The '/' keeps its name apart from those of
  // groups.
  if (path.empty()) path.push_back(absl::StrCat("/", worker));
  return path;
}

}  // namespace

std::vector<std::vector<std::vector<int>>> LevelsOf(const Topology& topology,
                                                    absl::Span<const int> placement,
                                                    absl::Span<const int> active) {
  std::map<int, Path> places;
  size_t depth = 0;
  for (const int worker : active) {
    places[worker] = PlaceOf(topology, placement, worker);
    depth = std::max(depth, places[worker].size());
  }
  std::vector<std::vector<std::vector<int>>> levels;
  for (; depth > 0; --depth) {
    std::map<Path, std::vector<int>> groups;
    for (const int worker : active) {
      Path path = places[worker];
      if (path.size() > depth) path.resize(depth);
      groups[path].push_back(worker);
    }
    if (groups.size() == active.size() || groups.size() <= 1) continue;
    std::vector<std::vector<int>> level;
    for (auto& [path, workers] : groups) level.push_back(std::move(workers));
    std::sort(level.begin(), level.end());
    if (levels.empty() || levels.back() != level) levels.push_back(std::move(level));
  }
  return levels;
}

std::vector<int> OrderByPlace(const Topology& topology, absl::Span<const int> placement,
                              absl::Span<const int> active) {
  std::vector<std::pair<Path, int>> keyed;
  for (const int worker : active) {
    keyed.emplace_back(PlaceOf(topology, placement, worker), worker);
  }
  // Groups in the order of their first members, not of their names: ranks stay ascending where they
  // can.
  std::map<std::pair<size_t, Path>, int> first;  // (depth, path to that depth) to lowest rank
  for (const auto& [path, worker] : keyed) {
    for (size_t depth = 1; depth <= path.size(); ++depth) {
      first.try_emplace({depth, Path(path.begin(), path.begin() + static_cast<long>(depth))},
                        worker);
    }
  }
  std::vector<std::pair<std::vector<int>, int>> order;
  for (const auto& [path, worker] : keyed) {
    std::vector<int> key;
    for (size_t depth = 1; depth <= path.size(); ++depth) {
      key.push_back(first[{depth, Path(path.begin(), path.begin() + static_cast<long>(depth))}]);
    }
    order.emplace_back(std::move(key), worker);
  }
  std::sort(order.begin(), order.end());
  std::vector<int> workers;
  for (const auto& [key, worker] : order) workers.push_back(worker);
  return workers;
}

}  // namespace syncopate::plan
