// Starts collectives whose end somebody wants to be told of, from threads that must not wait. A call that
// cannot start yet without waiting (worker/prompt_start.h), and all of its group behind it, are held until
// they can. Calls of one group start in their order; groups do not hold up each other, since another worker
// may have them in another order.
//
// Not thread-safe.
#ifndef SYNCOPATE_SYNC_CALL_QUEUE_H_
#define SYNCOPATE_SYNC_CALL_QUEUE_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "syncopate/syncopate.h"
#include "worker/call_times.h"

namespace syncopate::sync {

class CallQueue {
 public:
  // How soon what is held should be tried again.
  static constexpr int64_t kTryAgainNs = 1'000'000;

  // `later` has StartHeld() called after that time, once. Null: calls may wait where they are started.
  // A call that has been held for `timeout` fails, with all that its group has behind it.
  CallQueue(std::function<void()> later, absl::Duration timeout,
            const Clock& clock = MonotonicClock())
      : later_(std::move(later)), timeout_(timeout), clock_(clock) {}

  class Started {
   public:
    // Until the call has ended, if it has begun.
    void Wait();
    // Of a call that has gone well, once that was told.
    worker::CallTimes times() const { return worker::TimesOf(*handle_); }

   private:
    friend class CallQueue;
    std::optional<Handle> handle_;
  };
  // `ended` is called once, unless the queue ends before the call has begun: on the thread that drives
  // the engine, where it must be quick, or here or in StartHeld() if the call is refused.
  std::shared_ptr<Started> Start(Group group, Call call,
                                 std::function<void(const absl::Status&)> ended);
  void StartHeld();

 private:
  struct Held {
    Group group;
    Call call;
    std::shared_ptr<Started> started;
    int64_t until_ns = 0;
  };
  // False: it would have to wait.
  bool TryStart(Held& held) const;

  const std::function<void()> later_;
  const absl::Duration timeout_;
  const Clock& clock_;
  std::deque<Held> held_;  // in the order in which they came
};

}  // namespace syncopate::sync

#endif  // SYNCOPATE_SYNC_CALL_QUEUE_H_
