// A barrier in which news spreads: in round r every worker tells the one 2^r further on that it and
// everybody it has heard of have started. After ceil(log2 n) rounds everybody has heard of
// everybody.
#include <bit>

#include "base/status.h"
#include "plan/collective/planners.h"
#include "plan/collective/program_builder.h"

namespace syncopate::plan {
namespace {

absl::StatusOr<Program> PlanDisseminationBarrier(const CollectiveRequest& request,
                                                 const PlannerOptions& options) {
  SYNCOPATE_RETURN_IF_ERROR(ValidateRequest(Collective::kBarrier, request, options));
  SYNCOPATE_ASSIGN_OR_RETURN(Program program,
                             ProgramBuilder(request, "dissemination", {0, 0}).Finish());
  // The messages carry no data, so the edges are written here: a message may go when the one of the
  // round before has come; sending and receiving in one round do not wait for each other.
  const std::vector<int>& active = request.active;
  const size_t size = active.size();
  for (size_t distance = 1; distance < size; distance *= 2) {
    for (size_t i = 0; i < size; ++i) {
      std::vector<Step>& steps = program.steps[static_cast<size_t>(active[i])];
      const uint32_t heard = static_cast<uint32_t>(steps.size()) - 1;
      const int peers[] = {active[(i + distance) % size], active[(i + size - distance) % size]};
      for (StepKind kind : {StepKind::kSend, StepKind::kReceive}) {
        Step& step = steps.emplace_back();
        step.kind = kind;
        step.peer = peers[kind == StepKind::kReceive];
        if (distance > 1) step.after.push_back(heard);
      }
    }
  }
  return program;
}

uint64_t DisseminationSteps(uint64_t workers, const PlannerOptions&) {
  return 4 * workers * static_cast<uint64_t>(std::bit_width(workers));
}

}  // namespace

void RegisterDissemination(PlannerRegistry& registry) {
  registry.Add({.name = "dissemination",
                .collective = Collective::kBarrier,
                .summary = "news spreads over distances 1, 2, 4, ...",
                .preference = 10,
                .plan = PlanDisseminationBarrier,
                .steps = DisseminationSteps});
}

}  // namespace syncopate::plan
