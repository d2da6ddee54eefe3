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
#include <vector>

#include "transport/transport.h"

namespace syncopate::transport::net {

// Not thread-safe.
class FlightTimes {
 public:
  // A frame with this many bytes of data came at `at_ns`, by any clock; it is `now_ns` by the clock of the
  // transport. `sent_ns` is by the clock of the sender.
  void Arrived(int64_t sent_ns, int64_t at_ns, uint64_t bytes, int64_t now_ns = 0) {
    // No clock says this, but a peer may claim anything.
    if (sent_ns < -kTimeMax || sent_ns > kTimeMax || at_ns < -kTimeMax || at_ns > kTimeMax) return;
    least_ns_ = std::min(least_ns_, at_ns - sent_ns);
    int64_t difference = least_ns_;
    for (const int64_t before : least_before_) difference = std::min(difference, before);
    const int64_t begin_ns = std::max(sent_ns + difference, last_ns_);
    if (at_ns > begin_ns) traffic_.busy_ns += at_ns - begin_ns;
    Spread(std::min(begin_ns, at_ns), at_ns, bytes);
    if (bytes > 0) least_age_ns_ = std::min(least_age_ns_, now_ns - at_ns);
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
    // The frame that was looked at soonest tells what the time was by the other clock.
    if (least_age_ns_ != kNone) traffic_.begin_ns = first_slot_ * Traffic::kSlotNs + least_age_ns_;
    least_age_ns_ = kNone;
    return std::exchange(traffic_, {});
  }

 private:
  // Adds what came evenly in this time to the slots of it.
  void Spread(int64_t begin_ns, int64_t end_ns, uint64_t bytes) {
    if (bytes == 0) return;
    constexpr int64_t kSlot = Traffic::kSlotNs, kLongest = kSlot * int64_t{Traffic::kSlotsMax} / 2;
    begin_ns = std::max(begin_ns, end_ns - kLongest);
    std::vector<Traffic::Slot>& slots = traffic_.slots;
    const int64_t first = Floor(begin_ns, kSlot), last = Floor(end_ns, kSlot);
    if (slots.empty()) first_slot_ = first;
    // Frames come in order but for little, so few slots are put before the others.
    while (first < first_slot_ && slots.size() < Traffic::kSlotsMax) {
      slots.insert(slots.begin(), Traffic::Slot{});
      --first_slot_;
    }
    while (last >= first_slot_ + static_cast<int64_t>(slots.size()) &&
           slots.size() < Traffic::kSlotsMax) {
      slots.push_back({});
    }
    for (int64_t slot = std::max(first, first_slot_); slot <= last; ++slot) {
      if (slot >= first_slot_ + static_cast<int64_t>(slots.size())) break;
      const int64_t from = std::max(begin_ns, slot * kSlot);
      const int64_t until = std::min(end_ns, (slot + 1) * kSlot);
      Traffic::Slot& cell = slots[static_cast<size_t>(slot - first_slot_)];
      cell.busy_ns += until - from;
      cell.bytes += end_ns == begin_ns
                        ? bytes
                        : static_cast<uint64_t>(static_cast<double>(bytes) *
                                                static_cast<double>(until - from) /
                                                static_cast<double>(end_ns - begin_ns));
    }
  }

  static int64_t Floor(int64_t ns, int64_t slot) {
    return ns >= 0 ? ns / slot : -((-ns + slot - 1) / slot);
  }

  static constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
  static constexpr int64_t kTimeMax = int64_t{1} << 61;
  // The calls of Take() for which the quickest frame is remembered.
  static constexpr size_t kRemembered = 8;

  int64_t least_ns_ = kNone;  // from sending to arriving, since the last Take()
  std::deque<int64_t> least_before_;
  int64_t last_ns_ = -kTimeMax;   // when the last frame came
  int64_t first_slot_ = 0;        // number of the first of traffic_.slots, by the clock of arrivals
  int64_t least_age_ns_ = kNone;  // of frames when they were looked at, since the last Take()
  Traffic traffic_;
};

}  // namespace syncopate::transport::net

#endif  // SYNCOPATE_TRANSPORT_NET_FLIGHT_TIMES_H_
