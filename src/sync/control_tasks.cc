#include "sync/control_tasks.h"

#include <atomic>
#include <deque>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"

namespace syncopate::sync {

class ControlTasks::Queue {
 public:
  // True if the control thread has to be told: it is not going to look anyway.
  bool Add(std::function<void()> task) {
    MutexLock lock(&mutex_);
    if (closed_) return false;
    tasks_.push_back(std::move(task));
    return tasks_.size() == 1;
  }

  // Runs those that are there now. What they add is left for the next time, so that the control thread
  // looks after its other duties in between.
  // The control thread does not wait for Stop(), which may have much to do.
  void RunOnce() {
    if (stopped_) return;
    MutexLock running(&run_mutex_);
    if (!stopped_) RunAll(Take());
  }
  void RunTimed(const std::function<void()>& task) {
    if (stopped_) return;
    MutexLock running(&run_mutex_);
    if (!stopped_) task();
  }

  void Stop() {
    const bool was_stopped = stopped_.exchange(true);
    MutexLock running(&run_mutex_);
    if (was_stopped) return;
    for (std::deque<std::function<void()>> tasks = Take(); !tasks.empty(); tasks = Take()) {
      RunAll(std::move(tasks));
    }
    MutexLock lock(&mutex_);
    closed_ = true;
    tasks_.clear();
  }

 private:
  std::deque<std::function<void()>> Take() {
    MutexLock lock(&mutex_);
    return std::exchange(tasks_, {});
  }
  static void RunAll(std::deque<std::function<void()>> tasks) {
    for (const std::function<void()>& task : tasks) task();
  }

  Mutex run_mutex_;  // held while tasks run
  std::atomic<bool> stopped_{false};
  Mutex mutex_;  // taken last
  std::deque<std::function<void()>> tasks_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

ControlTasks::ControlTasks(worker::Mailbox& mailbox)
    : mailbox_(mailbox), queue_(std::make_shared<Queue>()) {}

// As soon as the task is in the queue, Stop() may run it, which may be what the owner of this object waits for
// before it ends: nothing of this object is used after that.
void ControlTasks::Do(std::function<void()> task) {
  worker::Mailbox& mailbox = mailbox_;
  const std::shared_ptr<Queue> queue = queue_;
  if (queue->Add(std::move(task))) mailbox.Do([queue] { queue->RunOnce(); });
}

void ControlTasks::DoAt(int64_t when_ns, std::function<void()> task) {
  mailbox_.DoAt(when_ns, [queue = queue_, task = std::move(task)] { queue->RunTimed(task); });
}

void ControlTasks::Stop() { queue_->Stop(); }

}  // namespace syncopate::sync
