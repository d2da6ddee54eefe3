// The data goes around a ring: each worker only ever talks to its two neighbours, all links are
// busy all the time, and no more is sent than the least that any algorithm must send. The price is
// a number of rounds that grows with the number of workers.
#include <optional>
#include <string>
#include <utility>

#include "base/status.h"
#include "plan/collective/planners.h"
#include "plan/collective/program_builder.h"
#include "plan/collective/ring_order.h"
#include "plan/collective/ring_phases.h"
#include "plan/collective/shares.h"
#include "plan/collective/variants.h"

namespace syncopate::plan {
namespace {

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

// The variants are the order of the ranks, the order by place, and the order in which the worst
// link carries least.
absl::StatusOr<std::vector<Variant>> Orders(const PlanningContext& context) {
  const CollectiveRequest& request = context.request;
  SYNCOPATE_ASSIGN_OR_RETURN(std::vector<Variant> variants, VariantsByPlace(context));
  std::vector<std::vector<int>> known = {request.active};
  if (variants.size() > 1) known.push_back(variants[1].options.order);
  SYNCOPATE_ASSIGN_OR_RETURN(
      std::optional<std::vector<int>> best,
      BetterRingOrder(context.topology, context.placement, request.active, known));
  if (best) {
    variants.push_back({.name = "best order"});
    variants.back().options.order = *std::move(best);
  }
  return variants;
}

uint64_t RingSteps(uint64_t workers, uint64_t phases, const PlannerOptions& options) {
  return StepsOfAllPairs(workers, phases) * static_cast<uint64_t>(options.pieces);
}

}  // namespace

void RegisterRing(PlannerRegistry& registry) {
  const auto add = [&](Collective collective, int phases, std::string summary, Planner plan) {
    registry.Add({.name = "ring",
                  .collective = collective,
                  .summary = std::move(summary),
                  .preference = 10,
                  .plan = std::move(plan),
                  .variants = Orders,
                  .steps =
                      [phases](uint64_t workers, const PlannerOptions& options) {
                        return RingSteps(workers, static_cast<uint64_t>(phases), options);
                      },
                  .by_messages =
                      [phases](int workers) {
                        const double rounds = phases * (workers - 1);
                        return MessageCost{.rounds = rounds, .sent = rounds / workers};
                      }});
  };
  add(Collective::kAllReduce, 2, "around a ring: least traffic, neighbours only, many rounds",
      PlanRingAllReduce);
  add(Collective::kAllGather, 1, "around a ring: neighbours only", PlanRingAllGather);
  add(Collective::kReduceScatter, 1, "around a ring: neighbours only", PlanRingReduceScatter);
}

}  // namespace syncopate::plan
