#include "plan/collective/planners.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <tuple>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/limits.h"
#include "base/status.h"
#include "plan/collective/locality.h"

namespace syncopate::plan {

// Made by the build from the files of src/plan/algorithms.
void RegisterAlgorithms(PlannerRegistry& registry);

namespace {

// The order of AllPlanners(), the same in every process whatever the order of registration: workers
// that chose by another order could choose different programs.
auto KeyOf(const PlannerInfo& planner) {
  return std::tie(planner.collective, planner.preference, planner.name);
}

bool IsName(absl::string_view name) {
  return !name.empty() && name.size() <= limits::kAlgorithmBytesMax &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return absl::ascii_islower(static_cast<unsigned char>(c)) ||
                  absl::ascii_isdigit(static_cast<unsigned char>(c)) || c == '-';
         });
}

}  // namespace

const std::vector<std::vector<std::vector<int>>>& PlanningContext::levels() const {
  if (!levels_) levels_ = LevelsOf(topology, placement, request.active);
  return *levels_;
}

absl::Status PlannerRegistry::TryAdd(PlannerInfo planner) {
  if (!IsName(planner.name)) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", planner.name, "\" is not a name for an algorithm; use at most ",
                     limits::kAlgorithmBytesMax, " characters of a-z, 0-9 and -"));
  }
  if (!planner.plan) {
    return absl::InvalidArgumentError(
        absl::StrCat("the planner \"", planner.name, "\" has no function that plans"));
  }
  MutexLock lock(&mutex_);
  for (const auto& known : planners_) {
    if (known->collective == planner.collective && known->name == planner.name) {
      return absl::AlreadyExistsError(absl::StrCat("there is a planner \"", planner.name, "\" for ",
                                                   Name(planner.collective),
                                                   " already; choose another name"));
    }
  }
  auto added = std::make_unique<const PlannerInfo>(std::move(planner));
  const auto place =
      std::upper_bound(planners_.begin(), planners_.end(), added,
                       [](const auto& a, const auto& b) { return KeyOf(*a) < KeyOf(*b); });
  planners_.insert(place, std::move(added));
  return absl::OkStatus();
}

void PlannerRegistry::Add(PlannerInfo planner) {
  const absl::Status status = TryAdd(std::move(planner));
  if (status.ok()) return;
  std::fprintf(stderr, "syncopate: %s\n", std::string(status.message()).c_str());
  std::abort();
}

std::vector<const PlannerInfo*> PlannerRegistry::All() const {
  std::vector<const PlannerInfo*> all;
  MutexLock lock(&mutex_);
  all.reserve(planners_.size());
  for (const auto& planner : planners_) all.push_back(planner.get());
  return all;
}

// Never destroyed, since planners may be used by threads that outlive main().
PlannerRegistry& Planners() {
  static PlannerRegistry* const registry = [] {
    auto* made = new PlannerRegistry;
    RegisterAlgorithms(*made);
    return made;
  }();
  return *registry;
}

std::vector<const PlannerInfo*> AllPlanners() { return Planners().All(); }

absl::StatusOr<const PlannerInfo*> FindPlanner(Collective collective, absl::string_view name) {
  std::vector<absl::string_view> names;
  for (const PlannerInfo* planner : AllPlanners()) {
    if (planner->collective != collective) continue;
    if (planner->name == name) return planner;
    names.push_back(planner->name);
  }
  return absl::NotFoundError(absl::StrCat("\"", name, "\" is not an algorithm for ",
                                          Name(collective), "; choose ",
                                          absl::StrJoin(names, ", ")));
}

absl::StatusOr<Program> PlanBy(absl::string_view name, const CollectiveRequest& request,
                               const PlannerOptions& options) {
  SYNCOPATE_ASSIGN_OR_RETURN(const PlannerInfo* planner, FindPlanner(request.collective, name));
  return planner->plan(request, options);
}

}  // namespace syncopate::plan
