// What several tests of the forest planner need.
#ifndef SYNCOPATE_PLAN_FOREST_FOREST_TESTING_H_
#define SYNCOPATE_PLAN_FOREST_FOREST_TESTING_H_

#include <numeric>
#include <vector>

namespace syncopate::plan {

// 0, 1, ... workers-1.
inline std::vector<int> AllOf(int workers) {
  std::vector<int> all(static_cast<size_t>(workers));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

}  // namespace syncopate::plan

#endif  // SYNCOPATE_PLAN_FOREST_FOREST_TESTING_H_
