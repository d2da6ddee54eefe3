#include "cost/program_cost.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <queue>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "cost/flow_network.h"
#include "cost/program_flows.h"

namespace syncopate::cost {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// How far a message is. It flows when it is both offered and awaited, one after the other in its
// channel.
struct MessageState {
  bool offered = false;  // the send began, and its latency is over
  bool awaited = false;  // the receive began
  StepRef cause;         // what was done last before its bytes could flow
};

struct ChannelState {
  std::deque<int> waiting;  // messages that could flow if the channel were free
  int flowing = -1;         // the message that flows; -1: the channel is free
};

struct StepState {
  uint32_t missing = 0;  // steps in `after` that are not done
  int message = -1;
  double done = kNever;
  StepRef cause;  // the step in `after` that was done last
  std::vector<uint32_t> next;
};

// Plays a program in virtual time. Two things make time pass: an offer arrives, a latency after its
// send began, or a flow completes. Everything else happens at the moment of one of these events.
class Simulation {
 public:
  Simulation(const Program& program, const Topology& topology, absl::Span<const int> placement,
             double bytes_per_element)
      : program_(program),
        topology_(topology),
        flows_(program, topology, placement, bytes_per_element),
        network_(flows_.bandwidths()),
        drawn_(flows_.bandwidths().size(), 0) {}

  absl::Status Prepare();
  absl::Status Run();
  ProgramCost Result() const;

 private:
  void IndexSteps();

  void StartReadySteps();
  void StartStep(StepRef step);
  void StartLocal(StepRef ref);
  void MessageReady(int index, StepRef cause);
  void StartFlow(int index);
  void MessageDone(int index);
  void StepDone(StepRef ref);
  void BeginFlow(const Flow& flow, int tag);
  std::vector<ProgramCost::ChainStep> CriticalChain(StepRef last) const;
  // The step that stands for `ref` in the critical chain: a message stands there as its receive.
  StepRef Representative(StepRef ref) const;

  StepState& State(StepRef ref) { return states_[ref.worker][ref.step]; }
  const StepState& State(StepRef ref) const { return states_[ref.worker][ref.step]; }

  const Program& program_;
  const Topology& topology_;
  ProgramFlows flows_;  // constant after Prepare()
  FlowNetwork network_;
  std::vector<double> drawn_;  // so far, by resource

  std::vector<ChannelState> channels_;  // in the order of flows_.channels()
  std::vector<MessageState> messages_;  // in the order of flows_.messages()
  std::vector<std::vector<StepState>> states_;
  size_t steps_left_ = 0;

  double now_ = 0;
  std::deque<StepRef> ready_;   // steps to start now
  std::deque<int> instant_;     // messages that are done now
  std::vector<StepRef> local_;  // local steps that flow; tag -1-i of the network is the i-th
  // (time, order, message): offers on their way.
  using Offer = std::tuple<double, uint64_t, int>;
  std::priority_queue<Offer, std::vector<Offer>, std::greater<Offer>> offers_;
  uint64_t offers_made_ = 0;
};

void Simulation::IndexSteps() {
  states_.resize(program_.steps.size());
  for (size_t worker = 0; worker < program_.steps.size(); ++worker) {
    const std::vector<Step>& steps = program_.steps[worker];
    states_[worker].resize(steps.size());
    for (uint32_t i = 0; i < steps.size(); ++i) {
      states_[worker][i].missing = static_cast<uint32_t>(steps[i].after.size());
      for (const uint32_t before : steps[i].after) states_[worker][before].next.push_back(i);
      if (steps[i].after.empty()) ready_.push_back({static_cast<int>(worker), i});
    }
    steps_left_ += steps.size();
  }
}

absl::Status Simulation::Prepare() {
  IndexSteps();
  SYNCOPATE_RETURN_IF_ERROR(flows_.Match());
  channels_.resize(flows_.channels().size());
  messages_.resize(flows_.messages().size());
  for (size_t i = 0; i < messages_.size(); ++i) {
    State(flows_.messages()[i].send).message = static_cast<int>(i);
    State(flows_.messages()[i].receive).message = static_cast<int>(i);
  }
  return absl::OkStatus();
}

absl::Status Simulation::Run() {
  StartReadySteps();
  while (steps_left_ > 0) {
    const double offer = offers_.empty() ? kNever : std::get<0>(offers_.top());
    const double completion = network_.NextCompletion();
    now_ = std::min(offer, completion);
    if (now_ == kNever) break;  // nothing is under way: the steps that are left wait in a circle
    if (completion <= now_) {
      for (const int tag : network_.Complete(now_)) {
        if (tag >= 0) {
          MessageDone(tag);
        } else {
          StepDone(local_[-1 - tag]);
        }
      }
    }
    while (!offers_.empty() && std::get<0>(offers_.top()) <= now_) {
      const int index = std::get<2>(offers_.top());
      offers_.pop();
      messages_[index].offered = true;
      if (messages_[index].awaited) MessageReady(index, State(flows_.messages()[index].send).cause);
    }
    // Steps start after everything that ends or arrives at this moment has been noted.
    StartReadySteps();
  }
  for (int worker = 0; worker < program_.workers && steps_left_ > 0; ++worker) {
    for (uint32_t i = 0; i < states_[worker].size(); ++i) {
      if (states_[worker][i].done != kNever) continue;
      return absl::FailedPreconditionError(absl::StrCat("the program does not end: worker ", worker,
                                                        ", step ", i, " waits for ever"));
    }
  }
  return absl::OkStatus();
}

// A loop over queues in place of recursion: a chain of steps that take no time may be long.
void Simulation::StartReadySteps() {
  while (!ready_.empty() || !instant_.empty()) {
    if (!instant_.empty()) {
      const int index = instant_.front();
      instant_.pop_front();
      MessageDone(index);
    } else {
      const StepRef ref = ready_.front();
      ready_.pop_front();
      StartStep(ref);
    }
  }
}

void Simulation::StartStep(StepRef ref) {
  const Step& step = program_.steps[ref.worker][ref.step];
  const int index = State(ref).message;
  if (index < 0) {
    StartLocal(ref);
  } else if (step.kind == StepKind::kSend) {
    // The latency passes before the bytes flow, and does not occupy the links.
    const Channel& channel = flows_.channels()[flows_.messages()[index].channel];
    offers_.emplace(now_ + channel.latency, offers_made_++, index);
  } else {
    messages_[index].awaited = true;
    if (messages_[index].offered) MessageReady(index, State(ref).cause);
  }
}

void Simulation::StartLocal(StepRef ref) {
  const Flow flow = flows_.FlowOfLocal(ref);
  if (flow.draws.empty()) {
    StepDone(ref);
    return;
  }
  local_.push_back(ref);
  BeginFlow(flow, -static_cast<int>(local_.size()));
}

// The message is offered and awaited. The messages of a channel flow one after the other, in the
// order in which they became ready.
void Simulation::MessageReady(int index, StepRef cause) {
  messages_[index].cause = cause;
  ChannelState& channel = channels_[flows_.messages()[index].channel];
  channel.waiting.push_back(index);
  if (channel.flowing < 0) StartFlow(index);
}

// `index` is the first message that waits in its channel, and the channel is free.
void Simulation::StartFlow(int index) {
  const Message& message = flows_.messages()[index];
  ChannelState& channel = channels_[message.channel];
  channel.waiting.pop_front();
  channel.flowing = index;
  const Flow flow = flows_.FlowOf(message);
  if (flow.draws.empty()) {
    instant_.push_back(index);
  } else {
    BeginFlow(flow, index);
  }
}

void Simulation::BeginFlow(const Flow& flow, int tag) {
  for (const FlowNetwork::Draw& draw : flow.draws) {
    drawn_[draw.resource] += draw.weight * flow.amount;
  }
  network_.Start(now_, flow.amount, flow.draws, tag);
}

void Simulation::MessageDone(int index) {
  const Message& message = flows_.messages()[index];
  StepDone(message.receive);
  StepDone(message.send);
  ChannelState& channel = channels_[message.channel];
  channel.flowing = -1;
  if (channel.waiting.empty()) return;
  // The critical chain goes from the next message to this one, which held it up.
  messages_[channel.waiting.front()].cause = message.receive;
  StartFlow(channel.waiting.front());
}

void Simulation::StepDone(StepRef ref) {
  StepState& state = State(ref);
  state.done = now_;
  --steps_left_;
  for (const uint32_t next : state.next) {
    StepState& after = states_[ref.worker][next];
    if (--after.missing > 0) continue;
    // The last predecessor to be done is the one that the step waited for.
    after.cause = ref;
    ready_.push_back({ref.worker, next});
  }
}

StepRef Simulation::Representative(StepRef ref) const {
  if (ref.worker < 0) return ref;
  const int message = State(ref).message;
  return message < 0 ? ref : flows_.messages()[message].receive;
}

// Follows the causes back from the step that was done last to one that waited for nothing.
std::vector<ProgramCost::ChainStep> Simulation::CriticalChain(StepRef last) const {
  std::vector<ProgramCost::ChainStep> chain;
  for (StepRef at = Representative(last); at.worker >= 0;) {
    const StepState& state = State(at);
    const StepRef cause =
        Representative(state.message < 0 ? state.cause : messages_[state.message].cause);
    const double begin = cause.worker < 0 ? 0 : State(cause).done;
    chain.push_back({at.worker, at.step, begin, state.done});
    at = cause;
  }
  std::reverse(chain.begin(), chain.end());
  return chain;
}

ProgramCost Simulation::Result() const {
  ProgramCost cost;
  cost.worker_seconds.assign(states_.size(), 0);
  StepRef last;
  for (size_t worker = 0; worker < states_.size(); ++worker) {
    for (uint32_t i = 0; i < states_[worker].size(); ++i) {
      const double done = states_[worker][i].done;
      cost.worker_seconds[worker] = std::max(cost.worker_seconds[worker], done);
      // The first of the steps that are done last is the end of the critical chain.
      if (last.worker >= 0 && done <= cost.seconds) continue;
      cost.seconds = done;
      last = {static_cast<int>(worker), i};
    }
  }
  const auto load = [&](size_t resource, double bytes) {
    ProgramCost::Load result;
    result.bytes = bytes;
    if (cost.seconds > 0) {
      result.utilisation =
          std::min(1.0, result.bytes / (flows_.bandwidths()[resource] * cost.seconds));
    }
    return result;
  };
  // Flows do not draw on links that cannot limit them, so links are counted from the routes.
  const size_t links = topology_.links.size();
  std::vector<double> link_bytes(links, 0);
  for (const Channel& channel : flows_.channels()) {
    for (const int link : channel.route) link_bytes[link] += channel.bytes;
  }
  for (size_t i = 0; i < links; ++i) cost.links.push_back(load(i, link_bytes[i]));
  for (size_t i = 0; i < topology_.capacities.size(); ++i) {
    cost.capacities.push_back(load(links + i, drawn_[links + i]));
  }
  cost.critical_chain = CriticalChain(last);
  cost.messages = messages_.size();
  std::vector<double> sent(states_.size(), 0);
  for (const Message& message : flows_.messages()) sent[message.send.worker] += message.bytes;
  for (const double bytes : sent) {
    cost.bytes_sent_max = std::max(cost.bytes_sent_max, bytes);
    cost.bytes_sent_total += bytes;
  }
  return cost;
}

absl::Status CheckPlacement(const Program& program, const Topology& topology,
                            absl::Span<const int> placement) {
  if (placement.size() != static_cast<size_t>(program.workers)) {
    return absl::InvalidArgumentError(absl::StrCat("the placement has ", placement.size(),
                                                   " entries for ", program.workers, " workers"));
  }
  for (size_t worker = 0; worker < placement.size(); ++worker) {
    const int node = placement[worker];
    if (node < 0 || static_cast<size_t>(node) >= topology.nodes.size() ||
        topology.nodes[node].kind != NodeKind::kDevice) {
      return absl::InvalidArgumentError(
          absl::StrCat("placement[", worker, "]: ", node, " is not the index of a device"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ProgramCost> CostOf(const Program& program, const Topology& topology,
                                   absl::Span<const int> placement, size_t bytes_per_element) {
  SYNCOPATE_RETURN_IF_ERROR(Validate(program));
  SYNCOPATE_RETURN_IF_ERROR(CheckPlacement(program, topology, placement));
  Simulation simulation(program, topology, placement, static_cast<double>(bytes_per_element));
  SYNCOPATE_RETURN_IF_ERROR(simulation.Prepare());
  SYNCOPATE_RETURN_IF_ERROR(simulation.Run());
  return simulation.Result();
}

}  // namespace syncopate::cost
