// What rounds of groups ask of a network of racks: the tree of places that a topology tells of, the
// rates of their uplinks, and from these how long a round takes.
//
// A group of n workers averages S bytes in 2(n-1) steps one after the other, and passes each of its
// members and of the places that it is partly in with 2(n-1)/n * S bytes each way. Groups of a round
// run at once and share uplinks. A group takes
//     2(n-1) * latency + the largest of (bytes over an uplink that it crosses / its bandwidth),
// a round as long as its slowest group. It is what passing pieces round a circle of members in the
// order of places takes; other collectives may be quicker, but this is found for any number of
// workers in no time, so patterns are chosen by it.
#ifndef SYNCOPATE_PLAN_GROUPS_GROUP_NETWORK_H_
#define SYNCOPATE_PLAN_GROUPS_GROUP_NETWORK_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "model/pattern.h"
#include "model/topology.h"
#include "plan/groups/places.h"

namespace syncopate::plan {

class GroupNetwork {
 public:
  // A place's way to the places beside it.
  struct Uplink {
    std::string name;
    int parent = -1;  // index of the uplink of the place above; -1: there is none
    bool of_worker = false;
    int depth = 0;                // how many places are above it, the first left out
    double seconds_per_byte = 0;  // of its slower direction
    // What all ways from below it to places beside it have in common, both directions. None where
    // every pair of workers has a way of its own.
    std::vector<int> links;
    std::vector<int> capacities;
  };

  // `topology` must be valid; worker i is on the device `placement[i]`. The places are those of the
  // devices' or their hosts' groups, cut at '/', then the hosts.
  static absl::StatusOr<GroupNetwork> Of(const Topology& topology, absl::Span<const int> placement);

  // Its places, none of which is called slow; those that hold one other only are left out.
  const Place& places() const { return places_; }
  const std::vector<Uplink>& uplinks() const { return uplinks_; }  // of places() in preorder
  int workers() const { return static_cast<int>(worker_uplink_.size()); }
  // Whether some place holds several workers, but not all.
  bool has_racks() const;

  // The uplinks by which what `from` sends to `to` leaves places.
  std::vector<int> Leaving(int from, int to) const;
  // The bytes that cross each uplink each way.
  std::vector<double> UplinkBytes(const Pattern::Round& round, double bytes) const;
  double RoundSeconds(const Pattern::Round& round, double bytes) const;

  // places() with those slow whose entry is true. `whole`: they never go up for the place above, but
  // are not kept in pairs.
  Place PlacesWith(const std::vector<bool>& slow, bool whole) const;

 private:
  // By uplink: how many members of the group are below it.
  void CountBelow(const Pattern::Group& group, std::vector<int>& below) const;
  // Calls visit(uplink) for each that the group is partly below. `below` is all 0 before and after.
  template <typename Visit>
  void VisitCrossed(const Pattern::Group& group, std::vector<int>& below, const Visit& visit) const;

  Place places_;
  std::vector<Uplink> uplinks_;
  std::vector<double> latency_above_;  // by uplink: of a way from below it to a place beside it
  std::vector<int> worker_uplink_;     // by worker
};

// `topology` as if others used some of its uplinks: each part of those has that factor of its rate
// left. A part of several (two racks share the way between them) has the least of their factors.
Topology WithSlowUplinks(Topology topology,
                         const std::vector<std::pair<GroupNetwork::Uplink, double>>& slow);

}  // namespace syncopate::plan

#endif  // SYNCOPATE_PLAN_GROUPS_GROUP_NETWORK_H_
