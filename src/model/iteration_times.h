// What one worker measured of its own iterations: the times of its tensors and of its transfers.
#ifndef SYNCOPATE_MODEL_ITERATION_TIMES_H_
#define SYNCOPATE_MODEL_ITERATION_TIMES_H_

#include <cstdint>
#include <vector>

namespace syncopate {

// Where the time of one iteration went, in seconds by tensor of the model's table.
struct IterationTimes {
  // From the moment at which the forward pass needs the tensor until it needs the next one.
  std::vector<double> forward;
  // From the gradient before it in the backward pass until its own is ready.
  std::vector<double> backward;
};

// A transfer that has ended on this worker.
struct EndedTransfer {
  int64_t iteration = 0;  // the one that made its gradients
  int first = 0;          // the first tensor that it moved
  int last = 0;           // the last one
  uint64_t bytes = 0;
  double seconds = 0;  // since this worker started it
};

}  // namespace syncopate

#endif  // SYNCOPATE_MODEL_ITERATION_TIMES_H_
