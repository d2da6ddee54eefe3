// The signs of life between the launcher and its part on another host: when to send one, and when
// the other side has been silent for too long. Time comes in with every call.
//
// A side that was held up itself (stopped, or with no processor to run on) gives the other its full
// time again before it judges: what came meanwhile may lie unread.
#ifndef SYNCOPATE_LAUNCH_HEARTBEAT_H_
#define SYNCOPATE_LAUNCH_HEARTBEAT_H_

#include <algorithm>
#include <cstdint>

namespace syncopate::launch {

// Not thread-safe.
class Heartbeat {
 public:
  // Beats for each timeout, so that some may be late.
  static constexpr int64_t kBeats = 6;

  Heartbeat(int64_t timeout_ns, int64_t now_ns)
      : timeout_ns_(timeout_ns), heard_ns_(now_ns), looked_ns_(now_ns), beaten_ns_(now_ns) {}

  // Something came from the other side, or it cannot be heard for a reason of our own.
  void Heard(int64_t now_ns) { heard_ns_ = now_ns; }

  // To be called after all that came was heard, at NextNs() at the latest. True: the other side has
  // been silent for too long.
  bool IsLost(int64_t now_ns) {
    const bool held_up = now_ns - looked_ns_ > 2 * interval_ns();
    looked_ns_ = now_ns;
    if (held_up) heard_ns_ = now_ns;
    return now_ns - heard_ns_ >= timeout_ns_;
  }

  // True: send a sign of life now.
  bool TakeBeat(int64_t now_ns) {
    if (now_ns < beaten_ns_ + interval_ns()) return false;
    beaten_ns_ = now_ns;
    return true;
  }

  int64_t NextNs() const { return std::min(beaten_ns_ + interval_ns(), heard_ns_ + timeout_ns_); }

 private:
  int64_t interval_ns() const { return timeout_ns_ / kBeats; }

  int64_t timeout_ns_;
  int64_t heard_ns_;
  int64_t looked_ns_;
  int64_t beaten_ns_;
};

}  // namespace syncopate::launch

#endif  // SYNCOPATE_LAUNCH_HEARTBEAT_H_
