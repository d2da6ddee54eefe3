// The choice of an algorithm on one host, quick enough for every call: no program is made.
//
// On one host what counts is how often workers must wait for one another, and how many bytes go
// through the memory they share. Of the planners whose programs the engine runs as a whole there
// (PlannerInfo::in_place), those with fewer rounds are for small buffers and those with less memory
// traffic for large ones; the borders between them are computed once. Collectives without such a
// planner take the one that is marked for hosts, else the first of their list.
#ifndef SYNCOPATE_PLAN_COLLECTIVE_QUICK_SELECT_H_
#define SYNCOPATE_PLAN_COLLECTIVE_QUICK_SELECT_H_

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "model/topology_makers.h"
#include "plan/collective/planners.h"
#include "syncopate/collective.h"

namespace syncopate::plan {

// Workers that are to agree must be given the same numbers. Immutable, so thread-safe.
class QuickSelect {
 public:
  QuickSelect(int workers, const HostCosts& costs);

  // The name of a planner for that collective of `bytes` a worker.
  absl::string_view Algorithm(Collective collective, uint64_t bytes) const;

  // The largest call of the collective for which it is this planner: UINT64_MAX for the one of
  // large buffers, 0 for one that is never chosen.
  uint64_t BytesMax(Collective collective, absl::string_view name) const;

 private:
  // A planner up to a number of bytes.
  struct Range {
    const PlannerInfo* planner = nullptr;
    uint64_t bytes_max = 0;
  };
  // By collective: its ranges in the order of bytes. The last one has no end.
  std::vector<Range> ranges_[std::size(kCollectives)];
};

}  // namespace syncopate::plan

#endif  // SYNCOPATE_PLAN_COLLECTIVE_QUICK_SELECT_H_
