// Which places of a network are alike, so that groups of workers in like places share their programs.
//
// Two hosts are alike if they have the same devices, memory and links inside, and links of the same rates
// to the same switches: changing them with each other does not change the network. The same holds for two
// devices of a host. What has links straight to other hosts, or takes part in a route that the topology
// names, is like nothing else.
//
// A placement is replaced by the one that stands for all like it, and programs are planned for that: so
// workers plan the same program for a group whichever groups each of them has planned for before.
#ifndef SYNCOPATE_PLAN_COLLECTIVE_LIKE_PLACES_H_
#define SYNCOPATE_PLAN_COLLECTIVE_LIKE_PLACES_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "model/topology.h"

namespace syncopate::plan {

// Immutable, so thread-safe.
class LikePlaces {
 public:
  // `topology` must be valid.
  explicit LikePlaces(const Topology& topology);

  // The placement that stands for this one, device by device. Devices that are the same, or on the same
  // host, stay so, and different ones stay different.
  std::vector<int> Canonical(absl::Span<const int> placement) const;

 private:
  // A host with its devices, or a device without a host.
  struct Unit {
    std::vector<int> devices;
    std::vector<int> device_class;  // by device: the first device of the unit that is like it
    int unit_class = 0;
  };

  std::vector<Unit> units_;
  std::vector<int> unit_of_;               // by node; -1: none
  std::vector<int> place_in_unit_;         // by node: its index among the unit's devices
  std::vector<std::vector<int>> classes_;  // units that are alike, in their order
};

}  // namespace syncopate::plan

#endif  // SYNCOPATE_PLAN_COLLECTIVE_LIKE_PLACES_H_
