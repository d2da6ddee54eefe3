#include "probe/flow_ends.h"

#include <algorithm>
#include <cstring>

namespace syncopate::probe {
namespace {

constexpr uint64_t kSmallBytes = 8;
constexpr double kWindowMin = 4;  // pieces
// A piece that is answered sooner leaves room for more, one that is answered later has waited in a
// queue for too long.
constexpr int64_t kSoonNs = 25'000'000;
constexpr int64_t kLateNs = 60'000'000;

}  // namespace

bool FlowSender::Poll(Session& session, int64_t now_ns, bool time_is_up) {
  if (done_) return false;
  bool moved = false;
  const Extent piece = {Space::kData, memory_.pieces_offset, piece_bytes_};
  const auto small = [&](uint32_t step) {
    return Extent{Space::kData, memory_.small_offset + kSmallBytes * step, kSmallBytes};
  };
  while (acks_ < sent_ / FlowSteps::kPiecesPerAck) {
    const uint32_t theirs = steps_.their + steps_.Ack(acks_);
    const std::byte* ack = session.Arrived(to_, theirs, small(theirs));
    if (ack == nullptr) break;
    int64_t came_ns = 0;
    std::memcpy(&came_ns, ack, sizeof(came_ns));
    session.Consume(steps_.own + steps_.Ack(acks_), to_, theirs);
    ++acks_;
    const int64_t took_ns = came_ns - sent_ns_[acks_ * FlowSteps::kPiecesPerAck - 1];
    least_ns_ = std::min(least_ns_, took_ns);
    const int64_t waited_ns = took_ns - least_ns_;
    if (waited_ns < kSoonNs) window_ += FlowSteps::kPiecesPerAck;
    if (waited_ns > kLateNs) window_ = std::max(kWindowMin, window_ - 1);
    moved = true;
  }
  while (!end_sent_ && !time_is_up && sent_ < steps_.pieces &&
         sent_ - acks_ * FlowSteps::kPiecesPerAck < window_) {
    session.Offer(steps_.own + sent_, to_, memory_.base + memory_.pieces_offset, piece);
    sent_ns_.push_back(now_ns);
    ++sent_;
    moved = true;
  }
  if (!end_sent_ && (time_is_up || sent_ == steps_.pieces)) {
    const uint64_t total = sent_;
    const Extent where = small(steps_.own + steps_.End());
    std::memcpy(memory_.base + where.offset, &total, sizeof(total));
    session.Offer(steps_.own + steps_.End(), to_, memory_.base + where.offset, where);
    end_sent_ = true;
    moved = true;
  }
  if (!end_sent_) return moved;
  while (confirmed_ < sent_ &&
         session.Consumed(to_, steps_.own + confirmed_, steps_.their + confirmed_)) {
    ++confirmed_;
    moved = true;
  }
  done_ = confirmed_ == sent_ && acks_ == sent_ / FlowSteps::kPiecesPerAck &&
          session.Consumed(to_, steps_.own + steps_.End(), steps_.their + steps_.End());
  return moved || done_;
}

bool FlowReceiver::Poll(Session& session, int64_t now_ns, double seconds) {
  if (done_) return false;
  bool moved = false;
  const Extent piece = {Space::kData, memory_.pieces_offset, piece_bytes_};
  const auto small = [&](uint32_t step) {
    return Extent{Space::kData, memory_.small_offset + kSmallBytes * step, kSmallBytes};
  };
  while (arrivals_.size() < steps_.pieces) {
    const uint32_t next = static_cast<uint32_t>(arrivals_.size());
    if (session.Arrived(from_, steps_.their + next, piece) == nullptr) break;
    session.Consume(steps_.own + next, from_, steps_.their + next);
    arrivals_.push_back({seconds, piece_bytes_});
    if (arrivals_.size() % FlowSteps::kPiecesPerAck == 0) {
      const uint32_t step = steps_.own + steps_.Ack(next / FlowSteps::kPiecesPerAck);
      const Extent where = small(step);
      std::memcpy(memory_.base + where.offset, &now_ns, sizeof(now_ns));
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
