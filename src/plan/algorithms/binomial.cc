// Data moves along a binomial tree: in every round each worker that has the data passes it on.
// There are logarithmically many rounds and each moves all of the data, so it is for small buffers.
#include <algorithm>
#include <string>
#include <utility>

#include "base/status.h"
#include "plan/collective/binomial_tree.h"
#include "plan/collective/planners.h"
#include "plan/collective/program_builder.h"
#include "plan/collective/shares.h"

namespace syncopate::plan {
namespace {

// The binomial tree over the active indices, counted from the root.
class RootedTree {
 public:
  explicit RootedTree(const CollectiveRequest& request)
      : active_(request.active),
        root_(static_cast<size_t>(IndexOf(request, request.root))),
        edges_(BinomialTree(static_cast<int>(request.active.size()))) {}

  // The edges are in the order of a broadcast.
  const std::vector<BinomialEdge>& edges() const { return edges_; }

  int RankOf(int position) const { return active_[IndexAt(position)]; }

  // The blocks of the subtree under the edge, as one run or, around the end, two.
  std::vector<Chunks> BlocksUnder(const BinomialEdge& edge) const {
    const size_t first = IndexAt(edge.child), span = static_cast<size_t>(edge.span);
    const size_t head = std::min(span, active_.size() - first);
    std::vector<Chunks> runs = {Data(static_cast<uint32_t>(first), static_cast<uint32_t>(head))};
    if (head < span) runs.push_back(Data(0, static_cast<uint32_t>(span - head)));
    return runs;
  }

 private:
  size_t IndexAt(int position) const {
    return (root_ + static_cast<size_t>(position)) % active_.size();
  }

  const std::vector<int>& active_;
  size_t root_;
  std::vector<BinomialEdge> edges_;
};

absl::StatusOr<Program> PlanBinomialBroadcast(const CollectiveRequest& request,
                                              const PlannerOptions& options) {
  SYNCOPATE_RETURN_IF_ERROR(ValidateRequest(Collective::kBroadcast, request, options));
  ProgramBuilder builder(request, "binomial", {0, request.elements});
  const RootedTree tree(request);
  for (const BinomialEdge& edge : tree.edges()) {
    builder.Move(tree.RankOf(edge.parent), tree.RankOf(edge.child), Data(0));
  }
  return builder.Finish();
}

absl::StatusOr<Program> PlanBinomialReduce(const CollectiveRequest& request,
                                           const PlannerOptions& options) {
  SYNCOPATE_RETURN_IF_ERROR(ValidateRequest(Collective::kReduce, request, options));
  ProgramBuilder builder(request, "binomial", {0, request.elements});
  const RootedTree tree(request);
  for (auto edge = tree.edges().rbegin(); edge != tree.edges().rend(); ++edge) {
    builder.MoveReduce(tree.RankOf(edge->child), tree.RankOf(edge->parent), Data(0));
  }
  return builder.Finish();
}

absl::StatusOr<Program> PlanBinomialGather(const CollectiveRequest& request,
                                           const PlannerOptions& options) {
  SYNCOPATE_RETURN_IF_ERROR(ValidateRequest(Collective::kGather, request, options));
  SYNCOPATE_ASSIGN_OR_RETURN(std::vector<uint64_t> bounds, CutBlocks(request, 1));
  ProgramBuilder builder(request, "binomial", std::move(bounds));
  const RootedTree tree(request);
  for (auto edge = tree.edges().rbegin(); edge != tree.edges().rend(); ++edge) {
    for (Chunks blocks : tree.BlocksUnder(*edge)) {
      builder.Move(tree.RankOf(edge->child), tree.RankOf(edge->parent), blocks);
    }
  }
  return builder.Finish();
}

absl::StatusOr<Program> PlanBinomialScatter(const CollectiveRequest& request,
                                            const PlannerOptions& options) {
  SYNCOPATE_RETURN_IF_ERROR(ValidateRequest(Collective::kScatter, request, options));
  SYNCOPATE_ASSIGN_OR_RETURN(std::vector<uint64_t> bounds, CutBlocks(request, 1));
  ProgramBuilder builder(request, "binomial", std::move(bounds));
  const RootedTree tree(request);
  for (const BinomialEdge& edge : tree.edges()) {
    for (Chunks blocks : tree.BlocksUnder(edge)) {
      builder.Move(tree.RankOf(edge.parent), tree.RankOf(edge.child), blocks);
    }
  }
  return builder.Finish();
}

uint64_t BinomialSteps(uint64_t workers, const PlannerOptions&) { return 4 * workers; }

}  // namespace

void RegisterBinomial(PlannerRegistry& registry) {
  const auto add = [&](Collective collective, int preference, std::string summary, Planner plan) {
    registry.Add({.name = "binomial",
                  .collective = collective,
                  .summary = std::move(summary),
                  .preference = preference,
                  .plan = std::move(plan),
                  .steps = BinomialSteps});
  };
  add(Collective::kReduce, 10, "along a binomial tree: small buffers", PlanBinomialReduce);
  add(Collective::kBroadcast, 10, "along a binomial tree: small buffers", PlanBinomialBroadcast);
  add(Collective::kGather, 20, "along a binomial tree: small blocks, many workers",
      PlanBinomialGather);
  add(Collective::kScatter, 20, "along a binomial tree: small blocks, many workers",
      PlanBinomialScatter);
}

}  // namespace syncopate::plan
