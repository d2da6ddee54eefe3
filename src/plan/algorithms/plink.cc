// One tree inside each machine to a leader, one binary tree among the leaders; the sum comes back
// the same way. With enough pieces all levels work at the same time. (After Luo et al.: Plink:
// Discovering and exploiting locality for accelerated distributed training on the public cloud,
// 2020.)
#include <algorithm>

#include "base/status.h"
#include "plan/collective/machines.h"
#include "plan/collective/planners.h"
#include "plan/collective/program_builder.h"
#include "plan/collective/shares.h"
#include "plan/collective/variants.h"

namespace syncopate::plan {
namespace {

// The edges of the balanced binary tree whose in-order walk is `ranks`.
std::vector<RankEdge> BinaryTree(const std::vector<int>& ranks) {
  const int size = static_cast<int>(ranks.size());
  std::vector<RankEdge> edges;
  for (int index = 0; index < size; ++index) {
    const int parent = InOrderParent(index, size);
    if (parent < 0) continue;
    int depth = 1;
    for (int p = InOrderParent(parent, size); p >= 0; p = InOrderParent(p, size)) ++depth;
    edges.push_back({ranks[static_cast<size_t>(parent)], ranks[static_cast<size_t>(index)], depth});
  }
  return edges;
}

int DepthOf(const std::vector<RankEdge>& edges) {
  int depth = 0;
  for (const RankEdge& edge : edges) depth = std::max(depth, edge.depth);
  return depth;
}

absl::StatusOr<Program> PlanPlinkAllReduce(const CollectiveRequest& request,
                                           const PlannerOptions& options) {
  SYNCOPATE_RETURN_IF_ERROR(ValidateRequest(Collective::kAllReduce, request, options));
  SYNCOPATE_ASSIGN_OR_RETURN(std::vector<uint64_t> bounds,
                             CutEvenly(request.elements, static_cast<uint64_t>(options.pieces)));
  ProgramBuilder builder(request, "plink", std::move(bounds));

  std::vector<int> leaders;
  std::vector<RankEdge> inside;
  for (const std::vector<int>& machine : MachinesOf(request, options)) {
    // The root of a binary tree of all its members.
    const size_t leader =
        static_cast<size_t>(FloorPowerOfTwo(static_cast<int>(machine.size()))) - 1;
    leaders.push_back(machine[leader]);
    const std::vector<RankEdge> edges =
        options.local_trees.empty() ? BinaryTree(machine) : LocalTreeOf(machine, leader, options);
    inside.insert(inside.end(), edges.begin(), edges.end());
  }
  const std::vector<RankEdge> between = BinaryTree(leaders);
  const int depth_inside = DepthOf(inside);
  const int depth = depth_inside + DepthOf(between);

  Pipeline pipeline(/*data_chunks=*/1, /*scratch_chunks=*/0);
  const auto add = [&](const RankEdge& edge, int above) {
    pipeline.MoveReduce(depth - above - edge.depth, edge.child, edge.parent, Data(0));
    pipeline.Move(depth + above + edge.depth - 1, edge.parent, edge.child, Data(0));
  };
  for (const RankEdge& edge : inside) add(edge, depth - depth_inside);
  for (const RankEdge& edge : between) add(edge, 0);
  pipeline.Emit(options.pieces, &builder);
  return builder.Finish();
}

uint64_t PlinkSteps(uint64_t workers, const PlannerOptions& options) {
  return 4 * workers * static_cast<uint64_t>(options.pieces);
}

}  // namespace

void RegisterPlink(PlannerRegistry& registry) {
  registry.Add({.name = "plink",
                .collective = Collective::kAllReduce,
                .summary = "a tree inside each machine, a tree among leaders: many machines",
                .preference = 100,
                .plan = PlanPlinkAllReduce,
                .variants = VariantWithLocalTrees,
                .limit = LimitWithoutGroups,
                .steps = PlinkSteps});
}

}  // namespace syncopate::plan
