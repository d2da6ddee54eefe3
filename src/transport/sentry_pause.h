// How long a sentry thread was held up: by an overloaded machine, by one that stood still, or because
// its process was stopped. A worker whose sentry is late sends its heartbeats late and judges others
// late, so the deadlines of docs/failure.md hold as long as no sentry is held up.
#ifndef SYNCOPATE_TRANSPORT_SENTRY_PAUSE_H_
#define SYNCOPATE_TRANSPORT_SENTRY_PAUSE_H_

#include <algorithm>
#include <cstdint>
#include <limits>

#include "base/log.h"

namespace syncopate::transport {

// A pause from which on the log has a line of it.
inline constexpr int64_t kPauseToldNs = 500'000'000;

// Used by the sentry alone.
class SentryPause {
 public:
  // The sentry acts now and means to act again at `due_ns` at the latest.
  void Acts(int64_t now_ns, int64_t due_ns) {
    const int64_t late_ns = now_ns - std::min(due_ns_, now_ns);
    due_ns_ = due_ns;
    longest_ns_ = std::max(longest_ns_, late_ns);
    if (late_ns < kPauseToldNs) return;
    Log(LogLevel::kInfo, "this worker's sentry was held up for ", late_ns / 1'000'000, " ms");
  }

  int64_t longest_ns() const { return longest_ns_; }
  // At its end.
  void TellLongest() const {
    Log(LogLevel::kInfo, "the longest pause of this worker's sentry was ", longest_ns_ / 1'000'000,
        " ms");
  }

 private:
  int64_t due_ns_ = std::numeric_limits<int64_t>::max();  // it has not begun
  int64_t longest_ns_ = 0;
};

}  // namespace syncopate::transport

#endif  // SYNCOPATE_TRANSPORT_SENTRY_PAUSE_H_
