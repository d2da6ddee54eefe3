// For tests of planners that know groups.
#ifndef SYNCOPATE_PLAN_COLLECTIVE_UNEVEN_GROUPS_TESTING_H_
#define SYNCOPATE_PLAN_COLLECTIVE_UNEVEN_GROUPS_TESTING_H_

#include <cstddef>

#include "gtest/gtest.h"
#include "plan/collective/planner_testing.h"

namespace syncopate::plan::testing {

// With a group of four and one of two, every worker sends to the other group.
inline void ExpectNobodyIdleBetweenUnevenGroups(const Planner& planner) {
  PlannerOptions options;
  options.levels = {{{0, 1, 2, 3}, {4, 5}}};
  const Plan plan = PlanAndProve(planner, FullRequest(Collective::kAllReduce, 6, 6400), options);
  for (size_t rank = 0; rank < 6; ++rank) {
    bool crosses = false;
    for (const Step& step : plan.program.steps[rank]) {
      crosses |= step.kind == StepKind::kSend && (step.peer < 4) != (rank < 4);
    }
    EXPECT_TRUE(crosses) << rank;
  }
}

}  // namespace syncopate::plan::testing

#endif  // SYNCOPATE_PLAN_COLLECTIVE_UNEVEN_GROUPS_TESTING_H_
