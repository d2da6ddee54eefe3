#include "probe/experiment_flows.h"

#include "probe/experiment_layout.h"

namespace syncopate::probe {
namespace {

// The first part of a flow's time does not count: TCP has not found its rate yet.
constexpr double kRampPart = 0.35;

}  // namespace

ExperimentFlows::ExperimentFlows(const Instruction& instruction, int rank, int size,
                                 FlowMemory memory, int64_t begin_ns, int64_t end_ns)
    : seconds_(instruction.seconds), begin_ns_(begin_ns), end_ns_(end_ns) {
  const uint32_t self = static_cast<uint32_t>(rank);
  const uint32_t first_step = FirstStep(size);
  const uint32_t count = FlowSteps::Count(instruction.pieces);
  for (size_t i = 0; i < instruction.flows.size(); ++i) {
    const Instruction::Flow& flow = instruction.flows[i];
    if (flow.from != self && flow.to != self) continue;
    const uint32_t other = flow.from == self ? flow.to : flow.from;
    const uint32_t own_slot = SlotOf(instruction, i, self);
    const uint32_t their_slot = SlotOf(instruction, i, other);
    const FlowSteps steps = {.own = first_step + own_slot * count,
                             .their = first_step + their_slot * count,
                             .pieces = instruction.pieces};
    if (flow.from == self) {
      senders_.emplace_back(static_cast<int>(other), flow.piece_bytes, steps, memory);
    } else {
      receivers_.emplace_back(static_cast<int>(other), flow.piece_bytes, steps, memory);
    }
  }
  done_ = empty();
}

bool ExperimentFlows::Poll(transport::Session& session, int64_t now_ns) {
  if (done_) return false;
  time_is_up_ = now_ns >= end_ns_;
  const double seconds = static_cast<double>(now_ns - begin_ns_) * 1e-9;
  bool moved = false;
  done_ = true;
  for (FlowReceiver& receiver : receivers_) {
    moved = receiver.Poll(session, seconds) || moved;
    done_ = done_ && receiver.done();
  }
  for (FlowSender& sender : senders_) {
    moved = sender.Poll(session, now_ns, time_is_up_) || moved;
    done_ = done_ && sender.done();
  }
  return moved;
}

std::vector<FlowsAnswer::Flow> ExperimentFlows::Seen() const {
  std::vector<FlowsAnswer::Flow> seen;
  for (const FlowReceiver& receiver : receivers_) {
    seen.push_back(
        {.rate =
             RateBetween(receiver.arrivals(), kRampPart * seconds_, seconds_, receiver.exhausted()),
         .ended_seconds = receiver.exhausted() ? receiver.arrivals().back().seconds : seconds_});
  }
  return seen;
}

void ExperimentFlows::AddUnfinished(std::set<int>& workers) const {
  for (const FlowSender& sender : senders_) {
    if (!sender.done()) workers.insert(sender.to());
  }
  for (const FlowReceiver& receiver : receivers_) {
    if (!receiver.done()) workers.insert(receiver.from());
  }
}

}  // namespace syncopate::probe
