// At what rate the frames of a peer come, by the times at which the kernel got their packets.
//
// Only what happens inside a frame counts: all of it was there to be sent when its first byte was,
// so nothing but the network sets the pace, neither the other steps of a program nor a processor
// that is busy with other things. Where the sender was late with a part of a frame nevertheless,
// the median over many frames does not care.
#ifndef SYNCOPATE_TRANSPORT_NET_ARRIVAL_TIMES_H_
#define SYNCOPATE_TRANSPORT_NET_ARRIVAL_TIMES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace syncopate::net {

// A time of the kernel for each read; frames come one after the other. Not thread-safe.
class ArrivalTimes {
 public:
  // A read got `bytes` of the frame that is being read, the last of them at `time_ns` of any clock;
  // 0: not known. `first`: it is the first read of this frame.
  void Read(bool first, uint64_t bytes, int64_t time_ns) {
    if (first || time_ns == 0 || first_ns_ == 0 || time_ns < first_ns_) {
      Finish();
      first_ns_ = last_ns_ = first ? time_ns : 0;
      return;
    }
    if (time_ns == first_ns_) return;  // came together with the beginning
    bytes_ += bytes;
    last_ns_ = time_ns;
  }

  // The rate since the last call, bytes/s: of all bytes in frames half came faster. 0: not known.
  double TakeRate() {
    Finish();
    std::sort(rates_.begin(), rates_.end());
    uint64_t all = 0, below = 0;
    for (const auto& [rate, bytes] : rates_) all += bytes;
    double median = 0;
    for (const auto& [rate, bytes] : rates_) {
      below += bytes;
      median = rate;
      if (2 * below >= all) break;
    }
    rates_.clear();
    return median;
  }

 private:
  static constexpr uint64_t kBytesMin = 8 << 10;  // of a frame, after its first read
  static constexpr size_t kFramesMax = 256;       // that are remembered

  void Finish() {
    if (bytes_ >= kBytesMin && rates_.size() < kFramesMax) {
      rates_.emplace_back(
          static_cast<double>(bytes_) * 1e9 / static_cast<double>(last_ns_ - first_ns_), bytes_);
    }
    bytes_ = 0;
    first_ns_ = 0;
  }

  int64_t first_ns_ = 0;  // of the present frame; 0: not known
  int64_t last_ns_ = 0;
  uint64_t bytes_ = 0;  // that came after first_ns_, until last_ns_
  std::vector<std::pair<double, uint64_t>> rates_;
};

}  // namespace syncopate::net

#endif  // SYNCOPATE_TRANSPORT_NET_ARRIVAL_TIMES_H_
