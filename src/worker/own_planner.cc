// Planners that are registered through the public interface (syncopate/planner.h).
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "plan/collective/planners.h"
#include "syncopate/planner.h"
#include "worker/own_programs.h"

namespace syncopate {
namespace {

// The preference of such planners is behind the library's own: of two equal candidates the
// library's is taken.
constexpr int kPreference = 1 << 20;

absl::StatusOr<Program> PlanBy(const OwnPlanner& planner, const plan::CollectiveRequest& request,
                               const plan::PlannerOptions& options) {
  SYNCOPATE_RETURN_IF_ERROR(plan::ValidateRequest(planner.collective, request, options));
  const absl::StatusOr<std::string> text =
      planner.plan({.collective = request.collective,
                    .workers = request.workers,
                    .active = request.active,
                    .root = HasRoot(request.collective) ? request.root : -1,
                    .target = request.collective == Collective::kSendReceive ? request.target : -1,
                    .elements = request.elements,
                    .block_elements = request.block_elements,
                    .bytes_per_element = options.bytes_per_element});
  if (!text.ok()) return At(absl::StrCat("planner ", planner.name), text.status());
  absl::StatusOr<Program> program = worker::ReadOwnProgram(*text, request);
  if (!program.ok()) return At(absl::StrCat("planner ", planner.name), program.status());
  program->algorithm = planner.name;
  return program;
}

}  // namespace

absl::Status RegisterPlanner(OwnPlanner planner) {
  plan::PlannerInfo info;
  info.name = planner.name;
  info.collective = planner.collective;
  info.summary = planner.summary;
  info.preference = kPreference;
  info.own = true;
  if (planner.plan) {
    info.plan = [own = std::move(planner)](const plan::CollectiveRequest& request,
                                           const plan::PlannerOptions& options) {
      return PlanBy(own, request, options);
    };
  }
  return plan::Planners().TryAdd(std::move(info));
}

}  // namespace syncopate
