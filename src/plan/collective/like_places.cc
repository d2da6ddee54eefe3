#include "plan/collective/like_places.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"

namespace syncopate::plan {
namespace {

// What uses a capacity: a node, a unit, or -1 for several or for something outside of all units.
constexpr int kNobody = -2;
constexpr int kSeveral = -1;

void NoteUser(int& user, int by) {
  if (user == kNobody) {
    user = by;
  } else if (user != by) {
    user = kSeveral;
  }
}

// Describes parts of a topology by text, so that what is equal but for the names has equal text.
class Describer {
 public:
  // `owner` by node: which of `owners` units or devices it belongs to, or -1.
  Describer(const Topology& topology, const std::vector<int>& owner, size_t owners)
      : topology_(topology), users_(topology.capacities.size(), kNobody), links_of_(owners) {
    for (size_t node = 0; node < topology.nodes.size(); ++node) {
      for (const int capacity : topology.nodes[node].memory) Note(capacity, owner[node]);
    }
    for (size_t index = 0; index < topology.links.size(); ++index) {
      const Topology::Link& link = topology.links[index];
      const int from = owner[static_cast<size_t>(link.from)];
      const int to = owner[static_cast<size_t>(link.to)];
      if (from >= 0) links_of_[static_cast<size_t>(from)].push_back(index);
      if (to >= 0 && to != from) links_of_[static_cast<size_t>(to)].push_back(index);
      for (const int capacity : link.capacities) {
        Note(capacity, from >= 0 ? from : to);
        if (from >= 0 && to >= 0) Note(capacity, to);
      }
    }
  }

  // The parts of `own`, which are its `nodes`, and the links that touch them. A node outside is named by
  // its number; one of another owner too, which makes the text unlike all others.
  std::string Describe(int own, const std::vector<int>& nodes) const {
    std::map<int, int> local, capacities;
    for (const int node : nodes) local.emplace(node, static_cast<int>(local.size()));
    std::string text;
    for (const int index : nodes) {
      const Topology::Node& node = topology_.nodes[static_cast<size_t>(index)];
      absl::StrAppend(&text, "node ", static_cast<int>(node.kind), " ", node.group.size(), " ",
                      node.group, " ", node.message_overhead);
      for (const int capacity : node.memory) AppendCapacity(capacity, own, capacities, text);
      text += "\n";
    }
    for (const size_t index : links_of_[static_cast<size_t>(own)]) {
      const Topology::Link& link = topology_.links[index];
      for (const int end : {link.from, link.to}) {
        const auto found = local.find(end);
        absl::StrAppend(
            &text,
            found != local.end() ? absl::StrCat("own ", found->second) : absl::StrCat("node ", end),
            " ");
      }
      absl::StrAppend(&text, link.bandwidth, " ", link.latency);
      for (const int capacity : link.capacities) AppendCapacity(capacity, own, capacities, text);
      text += "\n";
    }
    return text;
  }

 private:
  void Note(int capacity, int by) { NoteUser(users_[static_cast<size_t>(capacity)], by); }

  void AppendCapacity(int index, int own, std::map<int, int>& seen, std::string& text) const {
    if (users_[static_cast<size_t>(index)] != own) {
      absl::StrAppend(&text, " capacity ", index);
      return;
    }
    const Topology::Capacity& capacity = topology_.capacities[static_cast<size_t>(index)];
    const auto [place, fresh] = seen.emplace(index, static_cast<int>(seen.size()));
    absl::StrAppend(&text, " own capacity ", place->second, " ", capacity.bandwidth, " ",
                    capacity.cached_bandwidth, " ", capacity.cache_bytes);
  }

  const Topology& topology_;
  std::vector<int> users_;  // by capacity
  std::vector<std::vector<size_t>>
      links_of_;  // by owner: links that touch its nodes, in their order
};

}  // namespace

LikePlaces::LikePlaces(const Topology& topology)
    : unit_of_(topology.nodes.size(), -1), place_in_unit_(topology.nodes.size(), -1) {
  std::map<int, int> unit_of_host;
  std::vector<std::vector<int>> nodes;  // of each unit, its host first
  for (const int device : Devices(topology)) {
    const int host = topology.nodes[static_cast<size_t>(device)].host;
    const auto [found, fresh] =
        unit_of_host.emplace(host >= 0 ? host : -1 - device, static_cast<int>(units_.size()));
    if (fresh) {
      units_.emplace_back();
      nodes.emplace_back();
      if (host >= 0) {
        nodes.back().push_back(host);
        unit_of_[static_cast<size_t>(host)] = found->second;
      }
    }
    Unit& unit = units_[static_cast<size_t>(found->second)];
    unit_of_[static_cast<size_t>(device)] = found->second;
    place_in_unit_[static_cast<size_t>(device)] = static_cast<int>(unit.devices.size());
    unit.devices.push_back(device);
    nodes[static_cast<size_t>(found->second)].push_back(device);
  }
  const bool named = !topology.routes.empty();
  const Describer of_units(topology, unit_of_, units_.size());
  std::vector<int> itself(topology.nodes.size());
  for (size_t node = 0; node < itself.size(); ++node) itself[node] = static_cast<int>(node);
  const Describer of_devices(topology, itself, itself.size());
  std::map<std::string, int> known;
  for (size_t u = 0; u < units_.size(); ++u) {
    Unit& unit = units_[u];
    std::string text = of_units.Describe(static_cast<int>(u), nodes[u]);
    if (named) absl::StrAppend(&text, "unit ", u);
    unit.unit_class = known.emplace(std::move(text), static_cast<int>(known.size())).first->second;
    classes_.resize(known.size());
    classes_[static_cast<size_t>(unit.unit_class)].push_back(static_cast<int>(u));
    std::map<std::string, int> devices;
    for (const int device : unit.devices) {
      std::string own = of_devices.Describe(device, {device});
      if (named) absl::StrAppend(&own, "device ", device);
      unit.device_class.push_back(
          devices.emplace(std::move(own), place_in_unit_[static_cast<size_t>(device)])
              .first->second);
    }
  }
}

// Units are met in the order of the placement: the first of a class becomes the class's first unit, and
// so on; the same for the devices of a unit.
std::vector<int> LikePlaces::Canonical(absl::Span<const int> placement) const {
  std::map<int, int> unit_for;                     // by unit: which one stands for it
  std::map<int, int> device_for;                   // by device
  std::map<int, size_t> units_met;                 // by class
  std::map<std::pair<int, int>, int> devices_met;  // by unit and class of its devices
  std::vector<int> canonical;
  for (const int device : placement) {
    const int u = unit_of_[static_cast<size_t>(device)];
    const Unit& unit = units_[static_cast<size_t>(u)];
    const auto [stands, fresh_unit] = unit_for.emplace(u, 0);
    if (fresh_unit) {
      stands->second = classes_[static_cast<size_t>(unit.unit_class)][units_met[unit.unit_class]++];
    }
    const auto [place, fresh_device] = device_for.emplace(device, 0);
    if (fresh_device) {
      const int device_class =
          unit.device_class[static_cast<size_t>(place_in_unit_[static_cast<size_t>(device)])];
      int skip = devices_met[{u, device_class}]++;
      // The next device of its kind, at that place in the unit that stands for its own.
      size_t at = 0;
      while (unit.device_class[at] != device_class || skip-- > 0) ++at;
      place->second = units_[static_cast<size_t>(stands->second)].devices[at];
    }
    canonical.push_back(place->second);
  }
  return canonical;
}

}  // namespace syncopate::plan
