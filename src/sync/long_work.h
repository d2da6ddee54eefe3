// Work that takes long, such as taking memory, packing parameters or applying what was pushed, on the control
// thread: it is cut into pieces, between which that thread sends its heartbeats and takes its mail. One job is
// done after the other, in the order in which they were given, so none sees another half done.
#ifndef SYNCOPATE_SYNC_LONG_WORK_H_
#define SYNCOPATE_SYNC_LONG_WORK_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "sync/control_tasks.h"

namespace syncopate::sync {

// Thread-safe.
class LongWork {
 public:
  // Does a piece of a job; true: that was the last one.
  using Piece = std::function<bool()>;
  // The control thread does pieces for about so long, then it looks after its other duties.
  static constexpr int64_t kTurnNs = 500'000;

  // Both must outlive it, and the tasks must be stopped before its end.
  LongWork(ControlTasks& tasks, const Clock& clock) : tasks_(tasks), clock_(clock) {}
  LongWork(const LongWork&) = delete;

  // `piece` is called on the control thread until it returns true; or, where the tasks are stopped before, on the
  // thread that stops them.
  void Add(Piece piece);

 private:
  void TakeTurn();

  ControlTasks& tasks_;
  const Clock& clock_;
  Mutex mutex_;
  std::deque<std::shared_ptr<Piece>> jobs_ ABSL_GUARDED_BY(mutex_);  // the first is under way
};

}  // namespace syncopate::sync

#endif  // SYNCOPATE_SYNC_LONG_WORK_H_
