// The two phases of ring algorithms, shared by every planner that goes around a ring.
//
// Share p (of the position p in the ring) is the data chunks
// [share_of[p] * pieces, (share_of[p] + 1) * pieces).
#ifndef SYNCOPATE_PLAN_COLLECTIVE_RING_PHASES_H_
#define SYNCOPATE_PLAN_COLLECTIVE_RING_PHASES_H_

#include <cstdint>
#include <vector>

#include "plan/collective/program_builder.h"

namespace syncopate::plan {

struct Ring {
  std::vector<int> ranks;          // by position
  std::vector<uint32_t> share_of;  // by position
  uint32_t pieces = 1;
};

// The ring of the request's active workers in the order of the options. The worker with active
// index i has share i.
Ring MakeRing(const CollectiveRequest& request, const PlannerOptions& options);

// Every share ends reduced at its own position: share p starts behind p and collects on its way.
void ReduceScatterAround(const Ring& ring, ProgramBuilder* builder);

// Every share goes from its own position to all others, except that nothing is sent to the position
// `complete`, which has all shares already (-1: there is none such).
void AllGatherAround(const Ring& ring, int complete, ProgramBuilder* builder);

}  // namespace syncopate::plan

#endif  // SYNCOPATE_PLAN_COLLECTIVE_RING_PHASES_H_
