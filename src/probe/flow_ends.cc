#include "probe/flow_ends.h"

#include <algorithm>
#include <cstring>

namespace syncopate::probe {
namespace {

constexpr uint64_t kSmallBytes = 8;
// The sender offers no more than this, or two pieces, beyond what the transport has taken.
constexpr uint64_t kUntakenBytes = 64 << 10;
// The window is what the flow achieves in this time and twice the fastest acknowledgement's. The
// first part is what acknowledgements may wait in queues: with less, a flow that shares a queue
// would stall.
constexpr double kWindowSeconds = 0.04;
// The least time over which a rate is taken.
constexpr int64_t kRateNs = 20'000'000;

}  // namespace

bool FlowSender::Poll(transport::Session& session, int64_t now_ns, bool time_is_up) {
  if (done_) return false;
  bool moved = false;
  const transport::Extent piece = {Space::kData, memory_.pieces_offset, piece_bytes_};
  const auto small = [&](uint32_t step) {
    return transport::Extent{Space::kData, memory_.small_offset + kSmallBytes * step, kSmallBytes};
  };
  if (mark_ns_ == 0) mark_ns_ = now_ns;
  while (acks_ < sent_ / FlowSteps::kPiecesPerAck) {
    const uint32_t theirs = steps_.their + steps_.Ack(acks_);
    if (session.Arrived(to_, theirs, small(theirs)) == nullptr) break;
    session.Consume(steps_.own + steps_.Ack(acks_), to_, theirs);
    ++acks_;
    fastest_answer_ns_ =
        std::min(fastest_answer_ns_, now_ns - sent_ns_[acks_ * FlowSteps::kPiecesPerAck - 1]);
    moved = true;
  }
  SetWindow(now_ns);
  while (confirmed_ < sent_ &&
         session.Consumed(to_, steps_.own + confirmed_, steps_.their + confirmed_)) {
    ++confirmed_;
    moved = true;
  }
  const uint32_t untaken_max =
      std::max<uint32_t>(2, static_cast<uint32_t>(kUntakenBytes / piece_bytes_));
  const auto on_their_way = [&] {
    return uint64_t{sent_ - acks_ * FlowSteps::kPiecesPerAck} * piece_bytes_;
  };
  while (!end_sent_ && !time_is_up && sent_ < steps_.pieces && sent_ - confirmed_ < untaken_max &&
         on_their_way() < std::max<uint64_t>(window_bytes_, 3 * uint64_t{piece_bytes_})) {
    session.Offer(steps_.own + sent_, to_, memory_.base + memory_.pieces_offset, piece);
    ++sent_;
    sent_ns_.push_back(now_ns);
    moved = true;
  }
  if (!end_sent_ && (time_is_up || sent_ == steps_.pieces)) {
    const uint64_t total = sent_;
    const transport::Extent where = small(steps_.own + steps_.End());
    std::memcpy(memory_.base + where.offset, &total, sizeof(total));
    session.Offer(steps_.own + steps_.End(), to_, memory_.base + where.offset, where);
    end_sent_ = true;
    moved = true;
  }
  if (!end_sent_) return moved;
  done_ = confirmed_ == sent_ && acks_ == sent_ / FlowSteps::kPiecesPerAck &&
          session.Consumed(to_, steps_.own + steps_.End(), steps_.their + steps_.End());
  return moved || done_;
}

void FlowSender::SetWindow(int64_t now_ns) {
  if (acks_ == 0 || now_ns - mark_ns_ < std::max(kRateNs, 2 * fastest_answer_ns_)) return;
  const double bytes = static_cast<double>(acks_ - acks_at_mark_) * FlowSteps::kPiecesPerAck *
                       static_cast<double>(piece_bytes_);
  const double rate = bytes * 1e9 / static_cast<double>(now_ns - mark_ns_);
  const double seconds = kWindowSeconds + 2e-9 * static_cast<double>(fastest_answer_ns_);
  window_bytes_ = std::max(kWindowBytesMin, static_cast<uint64_t>(rate * seconds));
  mark_ns_ = now_ns;
  acks_at_mark_ = acks_;
}

bool FlowReceiver::Poll(transport::Session& session, double seconds) {
  if (done_) return false;
  bool moved = false;
  const transport::Extent piece = {Space::kData, memory_.pieces_offset, piece_bytes_};
  const auto small = [&](uint32_t step) {
    return transport::Extent{Space::kData, memory_.small_offset + kSmallBytes * step, kSmallBytes};
  };
  while (arrivals_.size() < steps_.pieces) {
    const uint32_t next = static_cast<uint32_t>(arrivals_.size());
    if (session.Arrived(from_, steps_.their + next, piece) == nullptr) break;
    session.Consume(steps_.own + next, from_, steps_.their + next);
    arrivals_.push_back({seconds, piece_bytes_});
    if (arrivals_.size() % FlowSteps::kPiecesPerAck == 0) {
      const uint32_t step = steps_.own + steps_.Ack(next / FlowSteps::kPiecesPerAck);
      const transport::Extent where = small(step);
      session.Offer(step, from_, memory_.base + where.offset, where);
    }
    moved = true;
  }
  if (!end_seen_) {
    const uint32_t theirs = steps_.their + steps_.End();
    const std::byte* end = session.Arrived(from_, theirs, small(theirs));
    if (end == nullptr) return moved;
    std::memcpy(&total_, end, sizeof(total_));
    session.Consume(steps_.own + steps_.End(), from_, theirs);
    end_seen_ = true;
    moved = true;
  }
  if (arrivals_.size() < total_) return moved;
  const uint32_t acks = static_cast<uint32_t>(arrivals_.size()) / FlowSteps::kPiecesPerAck;
  while (acks_confirmed_ < acks && session.Consumed(from_, steps_.own + steps_.Ack(acks_confirmed_),
                                                    steps_.their + steps_.Ack(acks_confirmed_))) {
    ++acks_confirmed_;
    moved = true;
  }
  done_ = acks_confirmed_ == acks;
  return moved || done_;
}

}  // namespace syncopate::probe
