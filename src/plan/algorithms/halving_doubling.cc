// Partners exchange halves of what is left and add them, until each worker holds one share of the
// sum; the same exchanges in reverse collect the shares. As little is sent as in a ring, in
// logarithmically many rounds, if the number of workers is a power of two.
#include <bit>

#include "base/status.h"
#include "plan/collective/folding.h"
#include "plan/collective/planners.h"
#include "plan/collective/program_builder.h"
#include "plan/collective/shares.h"

namespace syncopate::plan {
namespace {

absl::StatusOr<Program> PlanHalvingDoublingAllReduce(const CollectiveRequest& request,
                                                     const PlannerOptions& options) {
  SYNCOPATE_RETURN_IF_ERROR(ValidateRequest(Collective::kAllReduce, request, options));
  const uint32_t shares =
      static_cast<uint32_t>(FloorPowerOfTwo(static_cast<int>(request.active.size())));
  SYNCOPATE_ASSIGN_OR_RETURN(std::vector<uint64_t> bounds, CutEvenly(request.elements, shares));
  ProgramBuilder builder(request, "halving-doubling", std::move(bounds));
  const std::vector<int> members = FoldIn(request, Data(0, shares), &builder);

  // Member i is left with the chunks [first[i], first[i] + width). Bit `distance` of i says which
  // half it keeps. Neighbours exchange the most: they are the likeliest to be close.
  std::vector<uint32_t> first(shares, 0);
  uint32_t width = shares;
  for (uint32_t distance = 1; distance < shares; distance *= 2) {
    width /= 2;
    for (uint32_t i = 0; i < shares; ++i) {
      const uint32_t partner = i ^ distance;
      const uint32_t theirs = first[i] + ((partner & distance) != 0 ? width : 0);
      builder.MoveReduce(members[i], members[partner], Data(theirs, width));
    }
    for (uint32_t i = 0; i < shares; ++i) first[i] += (i & distance) != 0 ? width : 0;
  }
  for (uint32_t distance = shares / 2; distance >= 1; distance /= 2) {
    for (uint32_t i = 0; i < shares; ++i) {
      builder.Move(members[i], members[i ^ distance], Data(first[i], width));
    }
    for (uint32_t i = 0; i < shares; ++i) first[i] -= (i & distance) != 0 ? width : 0;
    width *= 2;
  }
  FoldOut(request, Data(0, shares), &builder);
  return builder.Finish();
}

uint64_t HalvingDoublingSteps(uint64_t workers, const PlannerOptions&) {
  return 8 * workers * static_cast<uint64_t>(std::bit_width(workers));
}

// Workers beyond a power of two fold their data in first, and get the result last.
MessageCost HalvingDoublingCost(int workers) {
  const int rounds = std::bit_width(static_cast<unsigned>(workers)) - 1;
  const bool folds = !std::has_single_bit(static_cast<unsigned>(workers));
  const double shares = static_cast<double>(1 << rounds);
  return {.rounds = 2.0 * rounds + (folds ? 2 : 0),
          .sent = 2 * (shares - 1) / shares + (folds ? 1 : 0)};
}

}  // namespace

void RegisterHalvingDoubling(PlannerRegistry& registry) {
  registry.Add({.name = "halving-doubling",
                .collective = Collective::kAllReduce,
                .summary = "partners exchange halves: least traffic in few rounds, powers of two",
                .preference = 50,
                .plan = PlanHalvingDoublingAllReduce,
                .steps = HalvingDoublingSteps,
                .by_messages = HalvingDoublingCost});
}

}  // namespace syncopate::plan
