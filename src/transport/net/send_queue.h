// The frames that wait to be sent to one peer: control frames in their order, data by priority.
// Shared by the wires, which differ in how they take from it. No threads, no I/O.
#ifndef SYNCOPATE_TRANSPORT_NET_SEND_QUEUE_H_
#define SYNCOPATE_TRANSPORT_NET_SEND_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "transport/net/frame.h"

namespace syncopate::transport::net {

struct OutgoingFrame {
  EncodedHeader header;
  const std::byte* payload = nullptr;
  uint32_t payload_bytes = 0;
  uint64_t cookie = 0;
  std::string copy;  // the payload, where there is no cookie

  const void* bytes() const {
    return copy.empty() ? static_cast<const void*>(payload) : copy.data();
  }
  // From now on nobody waits for it, and `payload` may go away.
  void Keep() {
    copy.assign(reinterpret_cast<const char*>(payload), payload_bytes);
    cookie = 0;
  }
};

class SendQueue {
 public:
  // The payload of a frame without a cookie (0) is copied; others stay where they are until they
  // are taken, removed or cleared.
  void Add(const FrameHeader& header, const std::byte* payload, uint64_t cookie);
  bool empty() const;
  // The next control frame, or data frame of the highest priority, if there is one.
  std::optional<OutgoingFrame> TakeControl();
  std::optional<OutgoingFrame> TakeData();
  void Remove(uint64_t cookie);
  // Empties it and returns the cookies of what was in it.
  std::vector<uint64_t> Clear();

 private:
  std::deque<OutgoingFrame> control_;
  std::map<int, std::deque<OutgoingFrame>, std::greater<int>> data_;  // by priority
};

}  // namespace syncopate::transport::net

#endif  // SYNCOPATE_TRANSPORT_NET_SEND_QUEUE_H_
