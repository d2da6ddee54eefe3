// A result that one thread waits for, up to a deadline, and another brings; the one that brings it
// learns whether anybody still waits.
#ifndef SYNCOPATE_WORKER_AWAITED_H_
#define SYNCOPATE_WORKER_AWAITED_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "base/clock.h"
#include "base/mutex.h"

namespace syncopate::worker {

// Thread-safe. Shared by both threads.
template <typename T>
class Awaited {
 public:
  // False if nobody waits any more: the result stays with the caller.
  bool Bring(T& result) {
    MutexLock lock(&mutex_);
    if (given_up_) return false;
    result_ = std::move(result);
    came_.SignalAll();
    return true;
  }
  // Nothing at the deadline; then nobody waits any more.
  std::optional<T> Wait(const Clock& clock, int64_t deadline_ns) {
    MutexLock lock(&mutex_);
    while (!result_.has_value()) {
      const int64_t left_ns = deadline_ns - clock.NowNs();
      if (left_ns <= 0) {
        given_up_ = true;
        return std::nullopt;
      }
      came_.WaitFor(&mutex_, std::chrono::nanoseconds(left_ns));
    }
    return std::move(result_);
  }

 private:
  Mutex mutex_;
  CondVar came_;
  std::optional<T> result_ ABSL_GUARDED_BY(mutex_);
  bool given_up_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace syncopate::worker

#endif  // SYNCOPATE_WORKER_AWAITED_H_
