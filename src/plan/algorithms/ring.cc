// Around a ring: each worker only ever talks to its two neighbours, all links are busy all the
// time, and no more is sent than the least that any algorithm must send. The price is a number of
// rounds that grows with the number of workers.
#include "base/status.h"
#include "plan/collective/planners.h"
#include "plan/collective/program_builder.h"
#include "plan/collective/ring_phases.h"
#include "plan/collective/shares.h"

namespace syncopate::plan {

absl::StatusOr<Program> PlanRingAllReduce(const CollectiveRequest& request,
                                          const PlannerOptions& options) {
  SYNCOPATE_RETURN_IF_ERROR(ValidateRequest(Collective::kAllReduce, request, options));
  const Ring ring = MakeRing(request, options);
  SYNCOPATE_ASSIGN_OR_RETURN(std::vector<uint64_t> bounds,
                             CutEvenly(request.elements, ring.ranks.size() * ring.pieces));
  ProgramBuilder builder(request, "ring", std::move(bounds));
  ReduceScatterAround(ring, &builder);
  AllGatherAround(ring, /*complete=*/-1, &builder);
  return builder.Finish();
}

absl::StatusOr<Program> PlanRingReduceScatter(const CollectiveRequest& request,
                                              const PlannerOptions& options) {
  SYNCOPATE_RETURN_IF_ERROR(ValidateRequest(Collective::kReduceScatter, request, options));
  const Ring ring = MakeRing(request, options);
  SYNCOPATE_ASSIGN_OR_RETURN(std::vector<uint64_t> bounds, CutBlocks(request, ring.pieces));
  ProgramBuilder builder(request, "ring", std::move(bounds));
  ReduceScatterAround(ring, &builder);
  return builder.Finish();
}

absl::StatusOr<Program> PlanRingAllGather(const CollectiveRequest& request,
                                          const PlannerOptions& options) {
  SYNCOPATE_RETURN_IF_ERROR(ValidateRequest(Collective::kAllGather, request, options));
  const Ring ring = MakeRing(request, options);
  SYNCOPATE_ASSIGN_OR_RETURN(std::vector<uint64_t> bounds, CutBlocks(request, ring.pieces));
  ProgramBuilder builder(request, "ring", std::move(bounds));
  AllGatherAround(ring, /*complete=*/-1, &builder);
  return builder.Finish();
}

}  // namespace syncopate::plan
