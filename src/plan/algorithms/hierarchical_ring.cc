// Rings inside machines, then rings between them: the members of a machine reduce-scatter around a
// ring, the holders of each share in all machines all-reduce it around another, and the members
// all-gather around the first. As in hierarchical.cc the shares are dealt to the members in turn
// where machines have different sizes.
#include "base/status.h"
#include "plan/collective/machines.h"
#include "plan/collective/planners.h"
#include "plan/collective/program_builder.h"
#include "plan/collective/shares.h"
#include "plan/collective/variants.h"

namespace syncopate::plan {
namespace {

// Notes how a share reaches its holder around the machine's ring, from stage `up` on, and how it
// comes back to all, from stage `down` on.
void GatherAndSpread(const std::vector<int>& machine, size_t holder, Chunks part, int up, int down,
                     Pipeline* pipeline) {
  const size_t size = machine.size();
  for (size_t round = 0; round + 1 < size; ++round) {
    const size_t collector = (holder + 1 + round) % size;
    const size_t spreader = (holder + round) % size;
    pipeline->MoveReduce(up + static_cast<int>(round), machine[collector],
                         machine[(collector + 1) % size], part);
    pipeline->Move(down + static_cast<int>(round), machine[spreader],
                   machine[(spreader + 1) % size], part);
  }
}

absl::StatusOr<Program> PlanHierarchicalRingAllReduce(const CollectiveRequest& request,
                                                      const PlannerOptions& options) {
  SYNCOPATE_RETURN_IF_ERROR(ValidateRequest(Collective::kAllReduce, request, options));
  const std::vector<std::vector<int>> machines = MachinesOf(request, options);
  const uint32_t shares = LargestOf(machines);
  const uint32_t width = static_cast<uint32_t>(machines.size());
  SYNCOPATE_ASSIGN_OR_RETURN(
      std::vector<uint64_t> bounds,
      CutEvenly(request.elements,
                uint64_t{shares} * width * static_cast<uint64_t>(options.pieces)));
  ProgramBuilder builder(request, "hierarchical-ring", std::move(bounds));

  Pipeline pipeline(shares * width, /*scratch_chunks=*/0);
  const int between = static_cast<int>(shares) - 1;
  const int down = between + 2 * (static_cast<int>(width) - 1);
  for (uint32_t share = 0; share < shares; ++share) {
    for (const std::vector<int>& machine : machines) {
      GatherAndSpread(machine, share % machine.size(), Data(share * width, width), 0, down,
                      &pipeline);
    }
    AllReduceAround(HoldersOf(machines, share), between, share * width, &pipeline);
  }
  pipeline.Emit(options.pieces, &builder);
  return builder.Finish();
}

}  // namespace

void RegisterHierarchicalRing(PlannerRegistry& registry) {
  registry.Add({.name = "hierarchical-ring",
                .collective = Collective::kAllReduce,
                .summary = "rings inside machines, rings between: neighbours only",
                .preference = 110,
                .plan = PlanHierarchicalRingAllReduce,
                .variants = VariantWithLevels,
                .limit = LimitWithoutGroups,
                .steps = StepsOfMachines});
}

}  // namespace syncopate::plan
