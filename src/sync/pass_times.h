// Measures how long each tensor's forward and backward take, from the moments at which the training
// loop calls. What a call waits or packs is no part of it.
//
// Not thread-safe.
#ifndef SYNCOPATE_SYNC_PASS_TIMES_H_
#define SYNCOPATE_SYNC_PASS_TIMES_H_

#include <cstddef>
#include <cstdint>

#include "model/iteration_times.h"

namespace syncopate::sync {

class PassTimes {
 public:
  explicit PassTimes(int tensors) {
    times_.forward.resize(static_cast<size_t>(tensors));
    times_.backward.resize(static_cast<size_t>(tensors));
  }

  void Begin(int64_t now_ns) {
    forward_ = -1;
    mark_ns_ = now_ns;
  }
  // The forward of the tensor before is over, and that of `next` begins at the next Resume(); -1:
  // there is none.
  void Forward(int next, int64_t now_ns) {
    if (forward_ >= 0) times_.forward[static_cast<size_t>(forward_)] = Since(now_ns);
    forward_ = next;
  }
  void Backward(int tensor, int64_t now_ns) {
    times_.backward[static_cast<size_t>(tensor)] = Since(now_ns);
  }
  // The tensor had no part in the backward pass.
  void NoBackward(int tensor) { times_.backward[static_cast<size_t>(tensor)] = 0; }
  // The loop computes from now on.
  void Resume(int64_t now_ns) { mark_ns_ = now_ns; }

  const IterationTimes& times() const { return times_; }

 private:
  double Since(int64_t now_ns) const { return static_cast<double>(now_ns - mark_ns_) * 1e-9; }

  IterationTimes times_;
  int64_t mark_ns_ = 0;
  int forward_ = -1;  // the tensor whose forward runs
};

}  // namespace syncopate::sync

#endif  // SYNCOPATE_SYNC_PASS_TIMES_H_
