// The learning rate as a pure function of the iteration.
#ifndef SYNCOPATE_TRAIN_OPTIONS_LEARNING_RATE_H_
#define SYNCOPATE_TRAIN_OPTIONS_LEARNING_RATE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace syncopate::train {

struct LearningRate {
  enum class Shape { kConstant, kStep, kCosine };

  double base = 0.1;
  int64_t warmup = 0;  // iterations in which it rises in equal steps to `base`
  Shape shape = Shape::kConstant;
  std::vector<int64_t> steps;  // kStep: at each of these iterations it is multiplied by `factor`
  double factor = 0.1;
  int64_t iterations = 0;  // kCosine: where it reaches 0

  // `iteration` counts from 0.
  double RateAt(int64_t iteration) const;
  absl::Status Validate() const;
  // What ParseShape reads.
  std::string ShapeText() const;
};

// "constant", "cosine", "step:1000,2000" or "step:1000,2000x0.5", into the fields of `rate` that it
// is about. A cosine ends at `iterations`, which the caller sets.
absl::Status ParseShape(absl::string_view text, LearningRate& rate);

}  // namespace syncopate::train

#endif  // SYNCOPATE_TRAIN_OPTIONS_LEARNING_RATE_H_
