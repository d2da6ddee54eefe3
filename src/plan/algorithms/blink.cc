// Packed trees inside each machine, rings between machines.
//
// Every member of a machine collects one share of the data from the others along a tree of its own,
// so that together the trees use all links of the machine. The holders of a share in all machines
// then all-reduce it around a ring and hand it back along their trees. Where machines have
// different sizes the shares are dealt to the members in turn; some members then have more to do
// than others. (After Wang et al.: Blink: Fast and generic collectives for distributed ML, 2020.)
#include <algorithm>

#include "base/status.h"
#include "plan/collective/machines.h"
#include "plan/collective/planners.h"
#include "plan/collective/program_builder.h"
#include "plan/collective/shares.h"
#include "plan/collective/variants.h"

namespace syncopate::plan {
namespace {

absl::StatusOr<Program> PlanBlinkAllReduce(const CollectiveRequest& request,
                                           const PlannerOptions& options) {
  SYNCOPATE_RETURN_IF_ERROR(ValidateRequest(Collective::kAllReduce, request, options));
  const std::vector<std::vector<int>> machines = MachinesOf(request, options);
  const uint32_t shares = LargestOf(machines);
  // A share has one chunk for each machine of its ring.
  const uint32_t width = static_cast<uint32_t>(machines.size());
  SYNCOPATE_ASSIGN_OR_RETURN(
      std::vector<uint64_t> bounds,
      CutEvenly(request.elements,
                uint64_t{shares} * width * static_cast<uint64_t>(options.pieces)));
  ProgramBuilder builder(request, "blink", std::move(bounds));

  std::vector<std::vector<RankEdge>> trees(shares);  // by share, of all machines
  int depth = 0;
  for (uint32_t share = 0; share < shares; ++share) {
    for (const std::vector<int>& machine : machines) {
      for (const RankEdge& edge : LocalTreeOf(machine, share % machine.size(), options)) {
        trees[share].push_back(edge);
        depth = std::max(depth, edge.depth);
      }
    }
  }
  Pipeline pipeline(shares * width, /*scratch_chunks=*/0);
  const int rounds = 2 * (static_cast<int>(width) - 1);
  for (uint32_t share = 0; share < shares; ++share) {
    const Chunks part = Data(share * width, width);
    for (const RankEdge& edge : trees[share]) {
      pipeline.MoveReduce(depth - edge.depth, edge.child, edge.parent, part);
      pipeline.Move(depth + rounds + edge.depth - 1, edge.parent, edge.child, part);
    }
    AllReduceAround(HoldersOf(machines, share), depth, share * width, &pipeline);
  }
  pipeline.Emit(options.pieces, &builder);
  return builder.Finish();
}

}  // namespace

void RegisterBlink(PlannerRegistry& registry) {
  registry.Add({.name = "blink",
                .collective = Collective::kAllReduce,
                .summary = "packed trees inside machines, rings between: many links inside",
                .preference = 90,
                .plan = PlanBlinkAllReduce,
                .variants = VariantWithLocalTrees,
                .limit = LimitWithoutGroups,
                .steps = StepsOfMachines});
}

}  // namespace syncopate::plan
