// Half of the data is reduced and broadcast through each of two binary trees. Nearly every worker
// is a leaf in one tree and an inner node in the other, so that all links are used in both
// directions; with enough pieces each worker sends about twice the data in logarithmic depth.
// (Sanders, Speck, Träff: Two-tree algorithms for full bandwidth broadcast, reduction and scan,
// 2009.)
#include <algorithm>

#include "base/status.h"
#include "plan/collective/pipeline.h"
#include "plan/collective/planners.h"
#include "plan/collective/program_builder.h"
#include "plan/collective/shares.h"

namespace syncopate::plan {
namespace {

// Where the active index stands in a tree in which even positions are leaves. In the second tree a
// worker's position is odd if it is even in the first, by mirroring or, for an odd number of
// workers, by shifting (index 0 is then a leaf in both).
int Position(int tree, int index, int size) {
  if (tree == 0) return index;
  return size % 2 == 0 ? size - 1 - index : (index + size - 1) % size;
}

absl::StatusOr<Program> PlanDoubleTreeAllReduce(const CollectiveRequest& request,
                                                const PlannerOptions& options) {
  SYNCOPATE_RETURN_IF_ERROR(ValidateRequest(Collective::kAllReduce, request, options));
  const int size = static_cast<int>(request.active.size());
  SYNCOPATE_ASSIGN_OR_RETURN(
      std::vector<uint64_t> bounds,
      CutEvenly(request.elements, 2 * static_cast<uint64_t>(options.pieces)));
  ProgramBuilder builder(request, "double-tree", std::move(bounds));

  std::vector<int> parent_of(static_cast<size_t>(size)), depth_of(static_cast<size_t>(size), 0);
  int depth_max = 0;
  for (int position = 0; position < size; ++position) {
    parent_of[static_cast<size_t>(position)] = InOrderParent(position, size);
    int& depth = depth_of[static_cast<size_t>(position)];
    for (int p = InOrderParent(position, size); p >= 0; p = InOrderParent(p, size)) ++depth;
    depth_max = std::max(depth_max, depth);
  }

  Pipeline pipeline(/*data_chunks=*/2, /*scratch_chunks=*/0);
  for (int tree = 0; tree < 2; ++tree) {
    std::vector<int> rank_at(static_cast<size_t>(size));
    for (int index = 0; index < size; ++index) {
      rank_at[static_cast<size_t>(Position(tree, index, size))] =
          request.active[static_cast<size_t>(index)];
    }
    const Chunks half = Data(static_cast<uint32_t>(tree));
    for (int position = 0; position < size; ++position) {
      const int parent = parent_of[static_cast<size_t>(position)];
      if (parent < 0) continue;
      const int rank = rank_at[static_cast<size_t>(position)];
      const int parent_rank = rank_at[static_cast<size_t>(parent)];
      const int depth = depth_of[static_cast<size_t>(position)];
      pipeline.MoveReduce(depth_max - depth, rank, parent_rank, half);
      pipeline.Move(depth_max + depth - 1, parent_rank, rank, half);
    }
  }
  pipeline.Emit(options.pieces, &builder);
  return builder.Finish();
}

uint64_t DoubleTreeSteps(uint64_t workers, const PlannerOptions& options) {
  return 10 * workers * static_cast<uint64_t>(options.pieces);
}

}  // namespace

void RegisterDoubleTree(PlannerRegistry& registry) {
  registry.Add({.name = "double-tree",
                .collective = Collective::kAllReduce,
                .summary = "two pipelined binary trees: large buffers, many workers",
                .preference = 60,
                .plan = PlanDoubleTreeAllReduce,
                .steps = DoubleTreeSteps});
}

}  // namespace syncopate::plan
