// For tests of planners that know machines: what crosses between groups, and random trees inside.
#ifndef SYNCOPATE_PLAN_COLLECTIVE_MACHINES_TESTING_H_
#define SYNCOPATE_PLAN_COLLECTIVE_MACHINES_TESTING_H_

#include <vector>

#include "plan/collective/machines.h"
#include "plan/collective/planner_testing.h"

namespace syncopate::plan::testing {

// Elements that cross from one group to another.
inline uint64_t CrossingElements(const Plan& plan, const std::vector<std::vector<int>>& groups) {
  std::vector<size_t> group_of(static_cast<size_t>(plan.request.workers));
  for (size_t g = 0; g < groups.size(); ++g) {
    for (int rank : groups[g]) group_of[static_cast<size_t>(rank)] = g;
  }
  uint64_t elements = 0;
  for (size_t rank = 0; rank < plan.program.steps.size(); ++rank) {
    for (const Step& step : plan.program.steps[rank]) {
      if (step.kind != StepKind::kSend) continue;
      if (group_of[rank] != group_of[static_cast<size_t>(step.peer)]) {
        elements += plan.program.size(step);
      }
    }
  }
  return elements;
}

// What is true of every plan that reduces and broadcasts each byte on one tree, which passes
// between machines as rarely as may be.
inline void ExpectLeastTraffic(const Plan& plan) {
  const std::vector<std::vector<int>> machines = MachinesOf(plan.request, plan.options);
  EXPECT_EQ(plan.proof.sent_elements_total,
            2 * static_cast<uint64_t>(plan.size() - 1) * plan.request.elements);
  EXPECT_EQ(CrossingElements(plan, machines), 2 * (machines.size() - 1) * plan.request.elements);
}

// Some tree for some members of some machines.
inline std::vector<PlannerOptions::LocalTree> RandomLocalTrees(const PlannerOptions& options,
                                                               Random* random) {
  std::vector<PlannerOptions::LocalTree> trees;
  if (options.levels.empty()) return trees;
  for (const std::vector<int>& machine : options.levels[0]) {
    for (const int root : machine) {
      if (random->Below(2) == 0) continue;
      std::vector<int> reached = {root};
      PlannerOptions::LocalTree& tree = trees.emplace_back();
      tree.root = root;
      std::vector<int> members = machine;
      Shuffle(&members, random);
      for (const int member : members) {
        if (member == root) continue;
        tree.edges.emplace_back(OneOf(reached, random), member);
        reached.push_back(member);
      }
    }
  }
  return trees;
}

// The planner with random local trees, of the same seed for the same request.
inline Planner WithRandomLocalTrees(const Planner& planner) {
  return [planner](const CollectiveRequest& request, const PlannerOptions& options) {
    Random random(request.elements + 31 * request.active.size());
    PlannerOptions more = options;
    more.local_trees = RandomLocalTrees(options, &random);
    return planner(request, more);
  };
}

}  // namespace syncopate::plan::testing

#endif  // SYNCOPATE_PLAN_COLLECTIVE_MACHINES_TESTING_H_
