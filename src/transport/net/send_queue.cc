#include "transport/net/send_queue.h"

#include <algorithm>
#include <utility>

namespace syncopate::transport::net {
namespace {

std::optional<OutgoingFrame> TakeFront(std::deque<OutgoingFrame>& queue) {
  if (queue.empty()) return std::nullopt;
  OutgoingFrame frame = std::move(queue.front());
  queue.pop_front();
  return frame;
}

}  // namespace

void SendQueue::Add(const FrameHeader& header, const std::byte* payload, uint64_t cookie) {
  OutgoingFrame frame;
  frame.header = Encode(header);
  frame.payload = payload;
  frame.payload_bytes = header.payload_bytes;
  frame.cookie = cookie;
  if (cookie == 0 && header.payload_bytes > 0) frame.Keep();
  (CarriesData(header.type) ? data_[header.priority] : control_).push_back(std::move(frame));
}

bool SendQueue::empty() const {
  return control_.empty() && std::all_of(data_.begin(), data_.end(),
                                         [](const auto& queue) { return queue.second.empty(); });
}

std::optional<OutgoingFrame> SendQueue::TakeControl() { return TakeFront(control_); }

std::optional<OutgoingFrame> SendQueue::TakeData() {
  while (!data_.empty() && data_.begin()->second.empty()) data_.erase(data_.begin());
  if (data_.empty()) return std::nullopt;
  return TakeFront(data_.begin()->second);
}

void SendQueue::Remove(uint64_t cookie) {
  const auto is_it = [&](const OutgoingFrame& frame) { return frame.cookie == cookie; };
  for (auto& [priority, queue] : data_) std::erase_if(queue, is_it);
  std::erase_if(control_, is_it);
}

std::vector<uint64_t> SendQueue::Clear() {
  std::vector<uint64_t> cookies;
  const auto drop = [&](std::deque<OutgoingFrame>& queue) {
    for (const OutgoingFrame& frame : queue) {
      if (frame.cookie != 0) cookies.push_back(frame.cookie);
    }
    queue.clear();
  };
  drop(control_);
  for (auto& [priority, queue] : data_) drop(queue);
  return cookies;
}

}  // namespace syncopate::transport::net
