// What the strategy has to be told and no thread has told it yet: calls that ended and events from
// outside; and errors from outside that end it. Whichever thread comes first takes them: the training thread, if it waits, or the worker's
// control thread.
//
// Thread-safe. It has a mutex of its own, because the engine's callback must not wait for a thread that
// has the synchronizer's.
#ifndef SYNCOPATE_SYNC_TRANSFER_INBOX_H_
#define SYNCOPATE_SYNC_TRANSFER_INBOX_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <variant>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "strategy/event.h"

namespace syncopate::sync {

// One of the collectives of a transfer has ended.
struct EndedCall {
  int64_t transfer = 0;
  int64_t at_ns = 0;
  absl::Status status;
  size_t call = 0;  // which of them
};

class TransferInbox {
 public:
  // `tell` has the control thread call Take(). It is called on any thread, must be quick and must not
  // call the inbox. The clock must outlive the inbox.
  TransferInbox(const Clock& clock, std::function<void()> tell)
      : clock_(clock), tell_(std::move(tell)) {}

  // Quick: the engine's callbacks call it. Wakes the training thread if it waits, which needs one thread
  // less on the way to the update, else tells the control thread.
  void Add(EndedCall ended);
  // Tells the control thread, on which most of them come.
  void Add(strategy::Event event);
  void Add(absl::Status failure);

  using Item = std::variant<EndedCall, strategy::Event, absl::Status>;
  // All that is there, in the order in which it came.
  std::vector<Item> Take();

  // For the training thread, which has something to look at.
  void Ring();
  // The training thread waits until there is an item, which it then takes, or until Ring() was called
  // since the last time. False: neither came before the deadline.
  bool Wait(int64_t deadline_ns);
  // Whether a thread is in Wait() now.
  bool waited_for() const {
    MutexLock lock(&mutex_);
    return waiting_;
  }

 private:
  void Tell() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Clock& clock_;
  const std::function<void()> tell_;
  mutable Mutex mutex_;
  CondVar news_;
  std::vector<Item> items_ ABSL_GUARDED_BY(mutex_);
  bool told_ ABSL_GUARDED_BY(mutex_) = false;  // the control thread will take what is there
  bool waiting_ ABSL_GUARDED_BY(mutex_) = false;
  bool rung_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace syncopate::sync

#endif  // SYNCOPATE_SYNC_TRANSFER_INBOX_H_
