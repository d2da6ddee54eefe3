// Tensor tables and costs from a seed, for tests.
#ifndef SYNCOPATE_SIM_RANDOM_JOBS_TESTING_H_
#define SYNCOPATE_SIM_RANDOM_JOBS_TESTING_H_

#include <string>

#include "base/random.h"
#include "cost/communication_costs.h"
#include "model/tensor_table.h"

namespace syncopate::sim {

inline TensorTable RandomTable(Random& random, int tensors) {
  TensorTable table;
  table.model = "random";
  for (int i = 0; i < tensors; ++i) {
    table.tensors.push_back({.name = "t" + std::to_string(i),
                             .elements = 1 + random.Below(100000),
                             .forward_seconds = random.Unit() * 0.002,
                             .backward_seconds = random.Unit() * 0.004});
  }
  return table;
}

inline cost::CommunicationCosts RandomCosts(Random& random) {
  cost::CommunicationCosts costs;
  costs.a = random.Unit() * 0.003;
  costs.b = random.Unit() * 2e-8;
  costs.gamma = {1, 1 + random.Unit()};
  costs.gamma.push_back(costs.gamma.back() + random.Unit());
  return costs;
}

}  // namespace syncopate::sim

#endif  // SYNCOPATE_SIM_RANDOM_JOBS_TESTING_H_
