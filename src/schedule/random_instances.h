// Random planning problems for tests: models and networks of all kinds, from a seed.
#ifndef SYNCOPATE_SCHEDULE_RANDOM_INSTANCES_H_
#define SYNCOPATE_SCHEDULE_RANDOM_INSTANCES_H_

#include <cmath>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "cost/communication_costs.h"
#include "model/tensor_table.h"

namespace syncopate::schedule::testing {

struct Instance {
  TensorTable table;
  cost::CommunicationCosts costs;
};

// Between lo and hi, each power of ten as likely as the others.
inline double LogUniform(Random& random, double lo, double hi) {
  return lo * std::pow(hi / lo, random.Unit());
}

// A model of `tensors` tensors whose communication takes between a fifth of its backward pass and
// five times it, start-ups included, with gamma for up to `ways` at once.
inline Instance RandomInstance(uint64_t seed, int tensors, int ways) {
  Random random(seed);
  Instance instance;
  instance.table.model = absl::StrCat("random-", seed);
  const double largest = LogUniform(random, 1e5, 1e7);
  const double quick = random.Unit();  // how many tensors take no time of their own
  for (int i = 0; i < tensors; ++i) {
    TensorInfo tensor;
    tensor.name = absl::StrCat("tensor", i);
    tensor.elements = static_cast<uint64_t>(LogUniform(random, 64, largest));
    tensor.backward_seconds = random.Unit() < quick / 2 ? 0 : LogUniform(random, 1e-5, 1e-2);
    tensor.forward_seconds = tensor.backward_seconds / 2;
    instance.table.tensors.push_back(tensor);
  }
  const double backward = instance.table.backward_seconds() + 1e-4;
  const double communication = backward * LogUniform(random, 0.2, 5);
  const double startups = random.Unit();  // share of it
  instance.costs.a = communication * startups / tensors;
  instance.costs.b = communication * (1 - startups) / static_cast<double>(instance.table.bytes());
  for (int k = 2; k <= ways; ++k) {
    instance.costs.gamma.push_back(instance.costs.gamma.back() + random.Unit());
  }
  return instance;
}

}  // namespace syncopate::schedule::testing

#endif  // SYNCOPATE_SCHEDULE_RANDOM_INSTANCES_H_
