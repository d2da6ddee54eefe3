// A thread for work that takes too long for the control thread, and is wanted sooner than the plans that
// are made beside (worker/program_cache.h). It begins with the first work.
#ifndef SYNCOPATE_WORKER_SIDE_THREAD_H_
#define SYNCOPATE_WORKER_SIDE_THREAD_H_

#include <deque>
#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"

namespace syncopate::worker {

// Thread-safe.
class SideThread {
 public:
  SideThread() = default;
  SideThread(const SideThread&) = delete;
  // Waits for the work that is under way; what has not begun is dropped.
  ~SideThread();

  // Has it done, after all that came before.
  void Do(std::function<void()> work);

 private:
  void Run();

  Mutex mutex_;
  CondVar wanted_;
  std::deque<std::function<void()>> work_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace syncopate::worker

#endif  // SYNCOPATE_WORKER_SIDE_THREAD_H_
