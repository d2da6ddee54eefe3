// The data goes from worker to worker in pieces: with enough of them, every worker sends and
// receives all the time, and the whole takes little longer than sending the data once.
#include <algorithm>
#include <utility>

#include "base/status.h"
#include "plan/collective/pipeline.h"
#include "plan/collective/planners.h"
#include "plan/collective/program_builder.h"
#include "plan/collective/shares.h"
#include "plan/collective/variants.h"

namespace syncopate::plan {
namespace {

// The ranks in the order of the options, turned so that the root is first.
std::vector<int> ChainFromRoot(const CollectiveRequest& request, const PlannerOptions& options) {
  std::vector<int> chain = options.order.empty() ? request.active : options.order;
  std::rotate(chain.begin(), std::find(chain.begin(), chain.end(), request.root), chain.end());
  return chain;
}

absl::StatusOr<Program> PlanChainBroadcast(const CollectiveRequest& request,
                                           const PlannerOptions& options) {
  SYNCOPATE_RETURN_IF_ERROR(ValidateRequest(Collective::kBroadcast, request, options));
  SYNCOPATE_ASSIGN_OR_RETURN(std::vector<uint64_t> bounds,
                             CutEvenly(request.elements, static_cast<uint64_t>(options.pieces)));
  ProgramBuilder builder(request, "chain", std::move(bounds));
  const std::vector<int> chain = ChainFromRoot(request, options);
  Pipeline pipeline(/*data_chunks=*/1, /*scratch_chunks=*/0);
  for (size_t i = 0; i + 1 < chain.size(); ++i) {
    pipeline.Move(static_cast<int>(i), chain[i], chain[i + 1], Data(0));
  }
  pipeline.Emit(options.pieces, &builder);
  return builder.Finish();
}

absl::StatusOr<Program> PlanChainReduce(const CollectiveRequest& request,
                                        const PlannerOptions& options) {
  SYNCOPATE_RETURN_IF_ERROR(ValidateRequest(Collective::kReduce, request, options));
  SYNCOPATE_ASSIGN_OR_RETURN(std::vector<uint64_t> bounds,
                             CutEvenly(request.elements, static_cast<uint64_t>(options.pieces)));
  ProgramBuilder builder(request, "chain", std::move(bounds));
  std::vector<int> chain = ChainFromRoot(request, options);
  std::reverse(chain.begin(), chain.end());
  Pipeline pipeline(/*data_chunks=*/1, /*scratch_chunks=*/0);
  for (size_t i = 0; i + 1 < chain.size(); ++i) {
    pipeline.MoveReduce(static_cast<int>(i), chain[i], chain[i + 1], Data(0));
  }
  pipeline.Emit(options.pieces, &builder);
  return builder.Finish();
}

uint64_t ChainSteps(uint64_t workers, const PlannerOptions& options) {
  return 2 * workers * static_cast<uint64_t>(options.pieces);
}

}  // namespace

void RegisterChain(PlannerRegistry& registry) {
  const auto add = [&](Collective collective, Planner plan) {
    registry.Add({.name = "chain",
                  .collective = collective,
                  .summary = "from worker to worker in pieces: large buffers",
                  .preference = 20,
                  .plan = std::move(plan),
                  .variants = VariantsByPlace,
                  .steps = ChainSteps});
  };
  add(Collective::kReduce, PlanChainReduce);
  add(Collective::kBroadcast, PlanChainBroadcast);
}

}  // namespace syncopate::plan
