// When to tell a user who or what is waited for: after a few seconds, and then ever more rarely.
#ifndef SYNCOPATE_BASE_WAIT_NOTICE_H_
#define SYNCOPATE_BASE_WAIT_NOTICE_H_

#include <algorithm>
#include <cstdint>

namespace syncopate {

// Not thread-safe.
class WaitNotice {
 public:
  static constexpr int64_t kFirstNs = 4'000'000'000;
  static constexpr int64_t kPauseNsMax = 60'000'000'000;

  // The waiting begins at `begin_ns`.
  explicit WaitNotice(int64_t begin_ns) : next_ns_(begin_ns + kFirstNs) {}

  // When the next notice is due.
  int64_t next_ns() const { return next_ns_; }
  // Whether one is due. If so, the next follows after a pause that is twice as long as the last.
  bool Due(int64_t now_ns) {
    if (now_ns < next_ns_) return false;
    pause_ns_ = std::min(2 * pause_ns_, kPauseNsMax);
    next_ns_ = now_ns + pause_ns_;
    return true;
  }

 private:
  int64_t pause_ns_ = kFirstNs;
  int64_t next_ns_;
};

}  // namespace syncopate

#endif  // SYNCOPATE_BASE_WAIT_NOTICE_H_
