// Where workers stand, as planners of groups see it: a tree of racks, pods and hosts, and which of
// its uplinks are slow now.
#ifndef SYNCOPATE_PLAN_GROUPS_PLACES_H_
#define SYNCOPATE_PLAN_GROUPS_PLACES_H_

#include <string>
#include <vector>

namespace syncopate::plan {

// A worker, or what holds the places below it. What leaves it passes its uplink: a worker's is the
// NIC of its host, a rack's is that of its switch.
struct Place {
  std::string name;
  int worker = -1;    // a worker's rank; -1: it holds others
  bool slow = false;  // its uplink has less bandwidth than those of its like, so it is kept apart
  // Those of its children that are slow never go up for it, but are not kept in pairs either.
  bool whole = false;
  std::vector<Place> children;

  bool is_worker() const { return worker >= 0; }
};

// The same tree without places that hold one other only; what stood above it is slow if either was.
// Places that hold nothing are left out.
Place WithoutSingles(const Place& place);

// How many workers are in it.
int WorkersIn(const Place& place);

}  // namespace syncopate::plan

#endif  // SYNCOPATE_PLAN_GROUPS_PLACES_H_
