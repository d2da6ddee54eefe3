#include "api/program_cache.h"

#include <utility>

#include "absl/hash/hash.h"
#include "base/status.h"
#include "plan/collective/planners.h"
#include "plan/collective/quick_select.h"

namespace syncopate {
size_t ProgramCache::Hash::operator()(const ProgramKey& key) const {
  return absl::HashOf(key.request.collective, key.request.workers, key.request.root,
                      key.request.target, key.request.elements, key.request.block_elements,
                      key.element_bytes, key.algorithm, key.self);
}

absl::StatusOr<std::shared_ptr<const CompiledProgram>> ProgramCache::Plan(
    const ProgramKey& key) const {
  absl::string_view algorithm = key.algorithm;
  if (algorithm.empty()) {
    HostCosts costs;
    costs.cores = cores_;
    algorithm = QuickSelect(key.request.workers, costs)
                    .Algorithm(key.request.collective, key.request.elements * key.element_bytes);
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const PlannerInfo* planner,
                             FindPlanner(key.request.collective, algorithm));
  SYNCOPATE_ASSIGN_OR_RETURN(Program program, planner->plan(key.request, {}));
  return CompileProgram(std::move(program), key.self);
}

absl::StatusOr<std::shared_ptr<const CompiledProgram>> ProgramCache::Get(const ProgramKey& key) {
  MutexLock lock(&mutex_);
  const auto found = programs_.find(key);
  if (found != programs_.end()) return found->second;
  SYNCOPATE_ASSIGN_OR_RETURN(std::shared_ptr<const CompiledProgram> program, Plan(key));
  if (programs_.size() >= kProgramsMax) programs_.clear();
  programs_[key] = program;
  return program;
}

}  // namespace syncopate
