#include "probe/ping_end.h"

#include <algorithm>

namespace syncopate::probe {

bool PingEnd::Poll(transport::Session& session, Outbox& outbox, const Instruction& instruction,
                   int rank, int64_t now_ns, bool& moved) {
  const Instruction::Flow& flow = instruction.flows.front();
  const bool sends = static_cast<uint32_t>(rank) == flow.from;
  if (!sends && static_cast<uint32_t>(rank) != flow.to) return true;
  const int other = static_cast<int>(sends ? flow.to : flow.from);
  const transport::Extent small = {Space::kData, offset_, 8};
  while (rounds_ < instruction.pieces) {
    const uint32_t there = first_step_ + 2 * rounds_, back = there + 1;
    if (sends && !sent_) {
      outbox.Offer(session, there, other, there, offset_, 8);
      sent_ = true;
      sent_ns_ = clock_.NowNs();
      moved = true;
    }
    const uint32_t step = sends ? back : there;
    if (session.Arrived(other, step, small) == nullptr) return false;
    session.Consume(step, other, step);
    if (sends) {
      best_ns_ = std::min(best_ns_, std::max(clock_.NowNs(), now_ns) - sent_ns_);
      sent_ = false;
    } else {
      outbox.Offer(session, back, other, back, offset_, 8);
    }
    ++rounds_;
    moved = true;
  }
  return true;
}

}  // namespace syncopate::probe
