#include "plan/collective/variants.h"

#include <utility>

#include "base/status.h"
#include "plan/collective/local_trees.h"
#include "plan/collective/locality.h"
#include "plan/collective/machines.h"

namespace syncopate::plan {
namespace {

// In larger machines trees are not looked for: their programs are too large anyway.
constexpr size_t kLocalTreeWorkersMax = 64;

}  // namespace

absl::StatusOr<std::vector<Variant>> VariantsByPlace(const PlanningContext& context) {
  std::vector<Variant> variants = {{.name = ""}};
  std::vector<int> order =
      OrderByPlace(context.topology, context.placement, context.request.active);
  if (order != context.request.active) {
    variants.push_back({.name = "by place"});
    variants.back().options.order = std::move(order);
  }
  return variants;
}

std::string LimitWithoutGroups(const PlanningContext& context) {
  return context.levels().empty() ? "the topology names no groups of workers" : "";
}

absl::StatusOr<std::vector<Variant>> VariantWithLevels(const PlanningContext& context) {
  std::vector<Variant> variants = {{.name = ""}};
  variants[0].options.levels = context.levels();
  return variants;
}

absl::StatusOr<std::vector<Variant>> VariantWithLocalTrees(const PlanningContext& context) {
  SYNCOPATE_ASSIGN_OR_RETURN(std::vector<Variant> variants, VariantWithLevels(context));
  PlannerOptions& options = variants[0].options;
  if (!options.levels.empty() && LargestOf(options.levels[0]) <= kLocalTreeWorkersMax) {
    SYNCOPATE_ASSIGN_OR_RETURN(
        options.local_trees,
        PackLocalTrees(context.topology, context.placement, options.levels[0]));
  }
  return variants;
}

uint64_t StepsOfAllPairs(uint64_t workers, uint64_t phases) {
  return 2 * phases * workers * workers;
}

uint64_t StepsOfMachines(uint64_t workers, const PlannerOptions& options) {
  const uint64_t machines = options.levels.empty() ? workers : options.levels[0].size();
  const uint64_t shares = options.levels.empty() ? 1 : LargestOf(options.levels[0]);
  return 4 * shares * (workers - machines + machines * (machines - 1)) *
         static_cast<uint64_t>(options.pieces);
}

}  // namespace syncopate::plan
