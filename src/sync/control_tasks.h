// What a synchronizer has its worker's control thread do, in order, for as long as the synchronizer
// lives: its tasks may still be in the mailbox when it ends, and must not run then.
#ifndef SYNCOPATE_SYNC_CONTROL_TASKS_H_
#define SYNCOPATE_SYNC_CONTROL_TASKS_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "worker/mailbox.h"

namespace syncopate::sync {

// Thread-safe.
class ControlTasks {
 public:
  // The mailbox must outlive it.
  explicit ControlTasks(worker::Mailbox& mailbox);
  ~ControlTasks() { Stop(); }
  ControlTasks(const ControlTasks&) = delete;

  // The control thread runs the task as soon as it can, after those that were given before. It must be
  // quick (sync/long_work.h has what takes longer) and must not wait for anything that this thread
  // does. Never waits.
  void Do(std::function<void()> task);
  // The same at a time, given as by the mailbox's clock.
  void DoAt(int64_t when_ns, std::function<void()> task);

  // From now on no task runs on the control thread. Those of Do() that are left, and those that they
  // give, run here; later ones are dropped. Not from a task.
  void Stop();

 private:
  class Queue;

  worker::Mailbox& mailbox_;
  const std::shared_ptr<Queue> queue_;  // the mailbox's tasks share it
};

}  // namespace syncopate::sync

#endif  // SYNCOPATE_SYNC_CONTROL_TASKS_H_
