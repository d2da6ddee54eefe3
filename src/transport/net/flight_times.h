// For how long the frames of a peer were in flight, from when the peer had them ready until they
// came.
//
// The clocks of two hosts do not agree, so the quickest recent frame tells by how much they differ.
// What other frames took longer is the time that the network needed to carry them and what was
// before them in its queues. Times in which nothing was in flight do not count. So a flow that waits
// for others, as in a ring of which another hop is slow, has a short time, and the one that they
// wait for a long one.
#ifndef SYNCOPATE_TRANSPORT_NET_FLIGHT_TIMES_H_
#define SYNCOPATE_TRANSPORT_NET_FLIGHT_TIMES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <utility>

#include "transport/transport.h"

namespace syncopate::transport::net {

// Not thread-safe.
class FlightTimes {
 public:
  // A frame with this many bytes of data came at `at_ns`; `sent_ns` is by the clock of the sender.
  void Arrived(int64_t sent_ns, int64_t at_ns, uint64_t bytes) {
    // No clock says this, but a peer may claim anything.
    if (sent_ns < -kTimeMax || sent_ns > kTimeMax || at_ns < -kTimeMax || at_ns > kTimeMax) return;
    least_ns_ = std::min(least_ns_, at_ns - sent_ns);
    int64_t difference = least_ns_;
    for (const int64_t before : least_before_) difference = std::min(difference, before);
    const int64_t begin_ns = std::max(sent_ns + difference, last_ns_);
    if (at_ns > begin_ns) traffic_.busy_ns += at_ns - begin_ns;
    last_ns_ = std::max(last_ns_, at_ns);
    traffic_.bytes += bytes;
  }

  // Since the last call.
  Traffic Take() {
    if (least_ns_ != kNone) {
      // The clocks drift, so that frames of long ago do not count any more.
      least_before_.push_back(std::exchange(least_ns_, kNone));
      if (least_before_.size() > kRemembered) least_before_.pop_front();
    }
    return std::exchange(traffic_, {});
  }

 private:
  static constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
  static constexpr int64_t kTimeMax = int64_t{1} << 61;
  // The calls of Take() for which the quickest frame is remembered.
  static constexpr size_t kRemembered = 8;

  int64_t least_ns_ = kNone;  // from sending to arriving, since the last Take()
  std::deque<int64_t> least_before_;
  int64_t last_ns_ = -kTimeMax;  // when the last frame came
  Traffic traffic_;
};

}  // namespace syncopate::transport::net

#endif  // SYNCOPATE_TRANSPORT_NET_FLIGHT_TIMES_H_
