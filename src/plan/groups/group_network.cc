#include "plan/groups/group_network.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "model/topology_routes.h"

namespace syncopate::plan {
namespace {

// The place of that name below `place`, made if there is none yet.
Place& Below(Place& place, const std::string& name) {
  for (Place& child : place.children) {
    if (!child.is_worker() && child.name == name) return child;
  }
  place.children.emplace_back().name = name;
  return place.children.back();
}

Place PlacesIn(const Topology& topology, absl::Span<const int> placement) {
  Place root;
  root.name = "network";
  for (size_t worker = 0; worker < placement.size(); ++worker) {
    const Topology::Node& device = topology.nodes[static_cast<size_t>(placement[worker])];
    std::string group = device.group;
    if (group.empty() && device.host >= 0) {
      group = topology.nodes[static_cast<size_t>(device.host)].group;
    }
    Place* place = &root;
    std::string path;
    for (const absl::string_view part : absl::StrSplit(group, '/', absl::SkipEmpty())) {
      absl::StrAppend(&path, path.empty() ? "" : "/", part);
      place = &Below(*place, path);
    }
    if (device.host >= 0) {
      place = &Below(*place, topology.nodes[static_cast<size_t>(device.host)].id);
    }
    Place& leaf = place->children.emplace_back();
    leaf.name = device.id;
    leaf.worker = static_cast<int>(worker);
  }
  return root;
}

int FirstWorker(const Place& place) {
  return place.is_worker() ? place.worker : FirstWorker(place.children.front());
}

// One worker of each child, or the worker itself.
std::vector<int> Samples(const Place& place) {
  if (place.is_worker()) return {place.worker};
  return {FirstWorker(place.children.front()), FirstWorker(place.children.back())};
}

// What a way between two workers passes: links and, behind them, capacities.
class Ways {
 public:
  Ways(const Topology& topology, absl::Span<const int> placement)
      : topology_(topology), placement_(placement), routes_(topology) {}

  struct Way {
    std::map<size_t, double> seconds_per_byte;  // by what it passes
    double latency = 0;
  };
  absl::StatusOr<Way> Between(int from, int to) {
    SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<int> links,
                               routes_.Between(placement_[static_cast<size_t>(from)],
                                               placement_[static_cast<size_t>(to)]));
    Way way;
    for (const int index : links) {
      const Topology::Link& link = topology_.links[static_cast<size_t>(index)];
      way.latency += link.latency;
      way.seconds_per_byte[static_cast<size_t>(index)] = 1 / link.bandwidth;
      for (const int shared : link.capacities) {
        way.seconds_per_byte[topology_.links.size() + static_cast<size_t>(shared)] =
            1 / topology_.capacities[static_cast<size_t>(shared)].bandwidth;
      }
    }
    return way;
  }

 private:
  const Topology& topology_;
  const absl::Span<const int> placement_;
  Routes routes_;
};

double Slowest(const std::map<size_t, double>& parts) {
  double slowest = 0;
  for (const auto& [part, seconds] : parts) slowest = std::max(slowest, seconds);
  return slowest;
}

// What all ways from `inside` to `outside` and back have in common in a direction belongs to the
// uplink, and its slowest part counts. Where there is none, every way is its own, and the quickest
// one counts. Returns the latency.
absl::StatusOr<double> MeasureUplink(Ways& ways, const std::vector<int>& inside,
                                     const std::vector<int>& outside, int links,
                                     GroupNetwork::Uplink& uplink) {
  double latency = 0;
  for (const bool out : {true, false}) {
    std::map<size_t, double> common;
    double quickest = 0;
    bool first = true;
    for (const int a : inside) {
      for (const int b : outside) {
        SYNCOPATE_ASSIGN_OR_RETURN(const Ways::Way way,
                                   out ? ways.Between(a, b) : ways.Between(b, a));
        const double its = Slowest(way.seconds_per_byte);
        quickest = first ? its : std::min(quickest, its);
        latency = std::max(latency, way.latency);
        if (first) common = way.seconds_per_byte;
        std::erase_if(common,
                      [&](const auto& part) { return !way.seconds_per_byte.contains(part.first); });
        first = false;
      }
    }
    uplink.seconds_per_byte =
        std::max(uplink.seconds_per_byte, common.empty() ? quickest : Slowest(common));
    for (const auto& [part, seconds] : common) {
      const int index = static_cast<int>(part);
      (index < links ? uplink.links : uplink.capacities)
          .push_back(index < links ? index : index - links);
    }
  }
  return latency;
}

// Goes through a tree of places and finds their uplinks.
class UplinkMeter {
 public:
  UplinkMeter(const Topology& topology, absl::Span<const int> placement)
      : worker_uplink(placement.size(), -1),
        ways_(topology, placement),
        links_(static_cast<int>(topology.links.size())) {}

  // `elsewhere`: a worker outside of `place`; -1: there is none.
  absl::Status MeasureBelow(const Place& place, int parent, int depth, int elsewhere);

  std::vector<GroupNetwork::Uplink> uplinks;
  std::vector<double> latencies;
  std::vector<int> worker_uplink;

 private:
  Ways ways_;
  const int links_;
};

absl::Status UplinkMeter::MeasureBelow(const Place& place, int parent, int depth, int elsewhere) {
  const size_t count = place.children.size();
  for (size_t i = 0; i < count; ++i) {
    const Place& child = place.children[i];
    std::vector<int> outside = Samples(place.children[(i + 1) % count]);
    if (count > 2) outside.push_back(FirstWorker(place.children[(i + count - 1) % count]));
    if (count == 2 && elsewhere >= 0) outside.push_back(elsewhere);
    GroupNetwork::Uplink found;
    found.name = child.name;
    found.parent = parent;
    found.of_worker = child.is_worker();
    found.depth = depth;
    SYNCOPATE_ASSIGN_OR_RETURN(const double latency,
                               MeasureUplink(ways_, Samples(child), outside, links_, found));
    const int uplink = static_cast<int>(uplinks.size());
    uplinks.push_back(std::move(found));
    latencies.push_back(latency);
    if (child.is_worker()) worker_uplink[static_cast<size_t>(child.worker)] = uplink;
    SYNCOPATE_RETURN_IF_ERROR(MeasureBelow(child, uplink, depth + 1, outside.front()));
  }
  return absl::OkStatus();
}

// Those of `place` by its index in preorder, `next` being that of the first below it.
void CallSlow(Place& place, const std::vector<bool>& slow, bool whole, size_t& next) {
  for (Place& child : place.children) {
    child.slow = slow[next++];
    place.whole = place.whole || (whole && child.slow);
    CallSlow(child, slow, whole, next);
  }
}

}  // namespace

absl::StatusOr<GroupNetwork> GroupNetwork::Of(const Topology& topology,
                                              absl::Span<const int> placement) {
  GroupNetwork network;
  network.places_ = WithoutSingles(PlacesIn(topology, placement));
  UplinkMeter meter(topology, placement);
  SYNCOPATE_RETURN_IF_ERROR(meter.MeasureBelow(network.places_, -1, 0, -1));
  network.uplinks_ = std::move(meter.uplinks);
  network.latency_above_ = std::move(meter.latencies);
  network.worker_uplink_ = std::move(meter.worker_uplink);
  return network;
}

bool GroupNetwork::has_racks() const {
  return std::any_of(uplinks_.begin(), uplinks_.end(),
                     [](const Uplink& uplink) { return !uplink.of_worker; });
}

void GroupNetwork::CountBelow(const Pattern::Group& group, std::vector<int>& below) const {
  for (const int rank : group) {
    for (int up = worker_uplink_[static_cast<size_t>(rank)]; up >= 0;
         up = uplinks_[static_cast<size_t>(up)].parent) {
      ++below[static_cast<size_t>(up)];
    }
  }
}

template <typename Visit>
void GroupNetwork::VisitCrossed(const Pattern::Group& group, std::vector<int>& below,
                                const Visit& visit) const {
  CountBelow(group, below);
  for (const int rank : group) {
    for (int up = worker_uplink_[static_cast<size_t>(rank)]; up >= 0;
         up = uplinks_[static_cast<size_t>(up)].parent) {
      int& members = below[static_cast<size_t>(up)];
      if (members > 0 && members < static_cast<int>(group.size())) visit(static_cast<size_t>(up));
      members = 0;
    }
  }
}

std::vector<int> GroupNetwork::Leaving(int from, int to) const {
  std::vector<int> above;
  for (int up = worker_uplink_[static_cast<size_t>(to)]; up >= 0;
       up = uplinks_[static_cast<size_t>(up)].parent) {
    above.push_back(up);
  }
  std::vector<int> leaving;
  for (int up = worker_uplink_[static_cast<size_t>(from)]; up >= 0;
       up = uplinks_[static_cast<size_t>(up)].parent) {
    if (std::find(above.begin(), above.end(), up) != above.end()) break;
    leaving.push_back(up);
  }
  return leaving;
}

std::vector<double> GroupNetwork::UplinkBytes(const Pattern::Round& round, double bytes) const {
  std::vector<double> loads(uplinks_.size(), 0);
  std::vector<int> below(uplinks_.size(), 0);
  for (const Pattern::Group& group : round) {
    const double n = static_cast<double>(group.size());
    VisitCrossed(group, below, [&](size_t up) { loads[up] += 2 * (n - 1) / n * bytes; });
  }
  return loads;
}

double GroupNetwork::RoundSeconds(const Pattern::Round& round, double bytes) const {
  const std::vector<double> loads = UplinkBytes(round, bytes);
  std::vector<int> below(uplinks_.size(), 0);
  double seconds = 0;
  for (const Pattern::Group& group : round) {
    double moving = 0, latency = 0;
    VisitCrossed(group, below, [&](size_t up) {
      moving = std::max(moving, loads[up] * uplinks_[up].seconds_per_byte);
      latency = std::max(latency, latency_above_[up]);
    });
    seconds = std::max(seconds, 2 * (static_cast<double>(group.size()) - 1) * latency + moving);
  }
  return seconds;
}

Place GroupNetwork::PlacesWith(const std::vector<bool>& slow, bool whole) const {
  Place places = places_;
  size_t next = 0;
  CallSlow(places, slow, whole, next);
  return places;
}

Topology WithSlowUplinks(Topology topology,
                         const std::vector<std::pair<GroupNetwork::Uplink, double>>& slow) {
  std::map<int, double> links, capacities;  // factors
  for (const auto& [uplink, factor] : slow) {
    for (const int link : uplink.links) {
      links[link] = std::min(factor, links.try_emplace(link, factor).first->second);
    }
    for (const int capacity : uplink.capacities) {
      capacities[capacity] =
          std::min(factor, capacities.try_emplace(capacity, factor).first->second);
    }
  }
  for (const auto& [link, factor] : links) {
    topology.links[static_cast<size_t>(link)].bandwidth *= factor;
  }
  for (const auto& [capacity, factor] : capacities) {
    topology.capacities[static_cast<size_t>(capacity)].bandwidth *= factor;
  }
  return topology;
}

}  // namespace syncopate::plan
