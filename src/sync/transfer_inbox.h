// What others leave for the synchronizer's own thread: calls that ended, events from outside, tasks,
// times at which the strategy wants to be woken, and that it is over.
//
// Thread-safe. It has a mutex of its own, because the engine's callback must not wait for a
// training thread that packs gradients under the synchronizer's.
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
  // `clock` must outlive the inbox.
  explicit TransferInbox(const Clock& clock) : clock_(clock) {}

  // Quick: the engine's callbacks call it.
  void Add(EndedCall ended);
  // In this order among each other and to the calls that ended.
  void Add(strategy::Event event);
  // Run by the synchronizer's thread without its lock.
  struct Task {
    std::function<void()> run;
  };
  void Add(Task task);
  void WakeAt(int64_t at_ns);
  // From now on Take() waits no more.
  void Stop();

  using Item = std::variant<EndedCall, strategy::Event, Task>;
  struct News {
    std::vector<Item> items;  // in their order
    size_t times_passed = 0;  // how many of the times have come
    bool over = false;        // nothing is left, and nothing should be waited for
  };
  // Waits for news, a while at most: there may be none.
  News Take();

 private:
  void AddItem(Item item);

  const Clock& clock_;
  Mutex mutex_;
  CondVar wanted_;
  std::vector<Item> items_ ABSL_GUARDED_BY(mutex_);
  std::vector<int64_t> wake_ups_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace syncopate::sync

#endif  // SYNCOPATE_SYNC_TRANSFER_INBOX_H_
