// A broadcast in which the root deals out shares, which then go around a ring: nobody sends more
// than about twice the data, whatever the number of workers.
#include <algorithm>

#include "base/status.h"
#include "plan/collective/planners.h"
#include "plan/collective/program_builder.h"
#include "plan/collective/ring_phases.h"
#include "plan/collective/shares.h"
#include "plan/collective/variants.h"

namespace syncopate::plan {
namespace {

absl::StatusOr<Program> PlanScatterAllGatherBroadcast(const CollectiveRequest& request,
                                                      const PlannerOptions& options) {
  SYNCOPATE_RETURN_IF_ERROR(ValidateRequest(Collective::kBroadcast, request, options));
  const Ring ring = MakeRing(request, options);
  SYNCOPATE_ASSIGN_OR_RETURN(std::vector<uint64_t> bounds,
                             CutEvenly(request.elements, ring.ranks.size() * ring.pieces));
  ProgramBuilder builder(request, "scatter-all-gather", std::move(bounds));
  for (uint32_t piece = 0; piece < ring.pieces; ++piece) {
    for (size_t p = 0; p < ring.ranks.size(); ++p) {
      if (ring.ranks[p] == request.root) continue;
      builder.Move(request.root, ring.ranks[p], Data(ring.share_of[p] * ring.pieces + piece));
    }
  }
  const auto root = std::find(ring.ranks.begin(), ring.ranks.end(), request.root);
  AllGatherAround(ring, static_cast<int>(root - ring.ranks.begin()), &builder);
  return builder.Finish();
}

uint64_t ScatterAllGatherSteps(uint64_t workers, const PlannerOptions&) {
  return StepsOfAllPairs(workers, 1);
}

}  // namespace

void RegisterScatterAllGather(PlannerRegistry& registry) {
  registry.Add({.name = "scatter-all-gather",
                .collective = Collective::kBroadcast,
                .summary = "the root deals shares that go around a ring: large buffers",
                .preference = 30,
                .plan = PlanScatterAllGatherBroadcast,
                .steps = ScatterAllGatherSteps});
}

}  // namespace syncopate::plan
