// Which optimizer, and its numbers.
#ifndef SYNCOPATE_TRAIN_OPTIONS_OPTIMIZER_OPTIONS_H_
#define SYNCOPATE_TRAIN_OPTIONS_OPTIMIZER_OPTIONS_H_

#include <string>

#include "absl/status/status.h"

namespace syncopate::train {

struct OptimizerOptions {
  std::string name = "sgd";  // or "adam"
  double weight_decay = 0;   // added to the gradient
  double momentum = 0.9;     // sgd
  bool nesterov = false;     // sgd
  double beta1 = 0.9;        // adam
  double beta2 = 0.999;      // adam
  double epsilon = 1e-8;     // adam

  // InvalidArgument for an unknown name or a value out of its range.
  absl::Status Validate() const;
};

}  // namespace syncopate::train

#endif  // SYNCOPATE_TRAIN_OPTIONS_OPTIMIZER_OPTIONS_H_
