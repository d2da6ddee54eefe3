// Partners at distances 1, 2, 4, ... exchange what they have added up so far: the fewest rounds for
// an algorithm in which nobody sends more than one message at a time. Everything is sent in every
// round, so it is for small buffers.
#include <bit>

#include "base/status.h"
#include "plan/collective/folding.h"
#include "plan/collective/planners.h"
#include "plan/collective/program_builder.h"

namespace syncopate::plan {
namespace {

absl::StatusOr<Program> PlanRecursiveDoublingAllReduce(const CollectiveRequest& request,
                                                       const PlannerOptions& options) {
  SYNCOPATE_RETURN_IF_ERROR(ValidateRequest(Collective::kAllReduce, request, options));
  if (request.active.size() == 1 || request.elements == 0) {
    return ProgramBuilder(request, "recursive-doubling", {0, request.elements}).Finish();
  }
  ProgramBuilder builder(request, "recursive-doubling", {0, request.elements},
                         {0, request.elements});
  const std::vector<int> members = FoldIn(request, Data(0), &builder);
  for (size_t distance = 1; distance < members.size(); distance *= 2) {
    for (size_t i = 0; i < members.size(); ++i) {
      if ((i & distance) != 0) continue;
      const int low = members[i], high = members[i + distance];
      // What is sent must stay as it is while data changes.
      builder.Copy(low, Data(0), Scratch(0));
      builder.Copy(high, Data(0), Scratch(0));
      // Both compute low (op) high, in this order: minimum and maximum of signed zeros, and NaNs,
      // depend on it, and all workers must end with the same bits.
      builder.MoveReduce(high, Scratch(0), low, Data(0));
      builder.Move(low, Scratch(0), high, Data(0));
      builder.Reduce(high, Scratch(0), Data(0));
    }
  }
  FoldOut(request, Data(0), &builder);
  return builder.Finish();
}

uint64_t RecursiveDoublingSteps(uint64_t workers, const PlannerOptions&) {
  return 4 * workers * static_cast<uint64_t>(std::bit_width(workers));
}

// Workers beyond a power of two fold their data in first, and get the result last.
MessageCost RecursiveDoublingCost(int workers) {
  const int rounds = std::bit_width(static_cast<unsigned>(workers)) - 1;
  const bool folds = !std::has_single_bit(static_cast<unsigned>(workers));
  return {.rounds = rounds + (folds ? 2.0 : 0.0), .sent = rounds + (folds ? 1.0 : 0.0)};
}

}  // namespace

void RegisterRecursiveDoubling(PlannerRegistry& registry) {
  registry.Add({.name = "recursive-doubling",
                .collective = Collective::kAllReduce,
                .summary = "partners exchange sums: few rounds, small buffers",
                .preference = 40,
                .plan = PlanRecursiveDoublingAllReduce,
                .steps = RecursiveDoublingSteps,
                .by_messages = RecursiveDoublingCost});
}

}  // namespace syncopate::plan
