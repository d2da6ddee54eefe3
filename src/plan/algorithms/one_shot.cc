// Everybody sends everything to everybody and adds all of it: one round, for buffers so small that
// the number of rounds is all that counts. Every worker adds in the order of the ranks, so all get
// the same bits.
//
// The engine recognises these programs by the order of their steps, so that order is a promise
// (one_shot_test.cc spells it out); messages are sent even if there are no elements.
#include "base/status.h"
#include "plan/collective/planners.h"
#include "plan/collective/program_builder.h"
#include "plan/collective/variants.h"

namespace syncopate::plan {
namespace {

absl::StatusOr<Program> PlanOneShotAllReduce(const CollectiveRequest& request,
                                             const PlannerOptions& options) {
  SYNCOPATE_RETURN_IF_ERROR(ValidateRequest(Collective::kAllReduce, request, options));
  const std::vector<int>& active = request.active;
  if (active.size() == 1) {
    return ProgramBuilder(request, "one-shot", {0, request.elements}).Finish();
  }
  ProgramBuilder builder(request, "one-shot", {0, request.elements}, {0, request.elements});
  for (size_t k = 0; k < active.size(); ++k) {
    const int worker = active[k];
    // What is sent must stay as it is while data changes.
    builder.Copy(worker, Data(0), Scratch(0));
    for (int peer : active) {
      if (peer != worker) builder.Send(worker, peer, Scratch(0));
    }
    if (k > 0) builder.Receive(worker, active[0], Data(0));
    for (size_t j = 1; j < active.size(); ++j) {
      if (j == k) {
        builder.Reduce(worker, Scratch(0), Data(0));
      } else {
        builder.ReceiveReduce(worker, active[j], Data(0));
      }
    }
  }
  return builder.Finish();
}

uint64_t OneShotSteps(uint64_t workers, const PlannerOptions&) {
  return StepsOfAllPairs(workers, 2);
}

// Everybody copies its data to where all see it (2S); one gate; everybody adds up all copies (nS
// read, S written).
InPlaceCost OneShotCost(int workers) {
  const double n = workers;
  return {.rounds = 1, .traffic = n * (n + 3), .touched = 2 * n};
}

}  // namespace

void RegisterOneShot(PlannerRegistry& registry) {
  registry.Add({.name = "one-shot",
                .collective = Collective::kAllReduce,
                .summary = "everybody sends everything to everybody: one round, tiny buffers",
                .preference = 30,
                .plan = PlanOneShotAllReduce,
                .steps = OneShotSteps,
                .in_place = OneShotCost});
}

}  // namespace syncopate::plan
