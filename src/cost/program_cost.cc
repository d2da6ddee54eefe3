#include "cost/program_cost.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <queue>
#include <string>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "cost/flow_network.h"
#include "model/topology_routes.h"

namespace syncopate::cost {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// Memory traffic, in bytes for each byte of the step (docs/topology.md).
constexpr double kSenderReads = 1;
constexpr double kReceiveWrites = 1;
constexpr double kReceiveReduceReadsAndWrites = 2;
constexpr double kCopyReadsAndWrites = 2;
constexpr double kReduceReadsAndWrites = 3;

// Refers to a step of a worker. Worker -1 means that there is no such step.
struct StepRef {
  int worker = -1;
  uint32_t step = 0;
};

// What all messages from one worker to another have in common. They flow one after the other.
struct Channel {
  std::vector<int> route;  // links
  double latency = 0;
  double bytes = 0;  // of all its messages
  // What one byte draws from the resources, by the kind of step that receives it.
  std::vector<FlowNetwork::Draw> receive_draws;
  std::vector<FlowNetwork::Draw> receive_reduce_draws;
  // Seconds per message.
  double sender_overhead = 0;
  double receiver_overhead = 0;
  // Both in program order; the k-th send matches the k-th receive.
  std::vector<StepRef> sends;
  std::vector<StepRef> receives;
  std::deque<int> waiting;  // messages that could flow if the channel were free
  int flowing = -1;         // the message that flows; -1: the channel is free
};

// A message flows when it is both offered and awaited, one after the other in its channel.
struct Message {
  StepRef send;
  StepRef receive;
  int channel = 0;
  double bytes = 0;
  bool offered = false;  // the send began, and its latency is over
  bool awaited = false;  // the receive began
  StepRef cause;         // what was done last before its bytes could flow
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
        placement_(placement),
        bytes_per_element_(bytes_per_element),
        routes_(topology),
        bandwidths_(Bandwidths()),
        network_(bandwidths_),
        bytes_(bandwidths_.size(), 0) {}

  absl::Status Prepare();
  absl::Status Run();
  ProgramCost Result() const;

 private:
  // The resources of the flow network are, in this order: the links, the capacities, the time of
  // each device by node, and, if the topology says that devices share cores, all cores together.
  int CapacityResource(int capacity) const {
    return static_cast<int>(topology_.links.size()) + capacity;
  }
  int DeviceResource(int node) const {
    return CapacityResource(static_cast<int>(topology_.capacities.size())) + node;
  }
  int SharedCores() const { return DeviceResource(static_cast<int>(topology_.nodes.size())); }
  std::vector<double> Bandwidths() const;
  absl::StatusOr<int> ChannelBetween(int from, int to);
  void AddMemory(int worker, double weight, std::vector<FlowNetwork::Draw>& draws) const;
  absl::Status MatchMessages();
  void IndexSteps();

  void StartReadySteps();
  void StartStep(StepRef step);
  void StartLocal(StepRef ref, const Step& step);
  void MessageReady(int index, StepRef cause);
  void StartFlow(int index);
  void MessageDone(int index);
  void StepDone(StepRef ref);
  void BeginFlow(double bytes, std::vector<FlowNetwork::Draw> draws, int tag);
  std::vector<ProgramCost::ChainStep> CriticalChain(StepRef last) const;
  // The step that stands for `ref` in the critical chain: a message stands there as its receive.
  StepRef Representative(StepRef ref) const;

  StepState& State(StepRef ref) { return states_[ref.worker][ref.step]; }
  const StepState& State(StepRef ref) const { return states_[ref.worker][ref.step]; }

  // Constant after construction.
  const Program& program_;
  const Topology& topology_;
  const absl::Span<const int> placement_;
  const double bytes_per_element_;

  Routes routes_;
  const std::vector<double> bandwidths_;  // by resource
  FlowNetwork network_;
  std::vector<double> bytes_;  // drawn so far, by resource

  absl::flat_hash_map<std::pair<int, int>, int> channel_by_pair_;
  std::vector<Channel> channels_;
  std::vector<Message> messages_;
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

std::vector<double> Simulation::Bandwidths() const {
  std::vector<double> bandwidths;
  for (const Topology::Link& link : topology_.links) bandwidths.push_back(link.bandwidth);
  // A memory has its cached bandwidth if all that the workers on it hold fits into the cache.
  std::vector<double> held(topology_.capacities.size(), 0);
  const double worker_bytes =
      static_cast<double>(program_.elements() + program_.scratch_elements()) * bytes_per_element_;
  for (size_t worker = 0; worker < placement_.size(); ++worker) {
    if (program_.steps[worker].empty()) continue;
    for (const int capacity : MemoryOf(topology_, placement_[worker])) {
      held[capacity] += worker_bytes;
    }
  }
  for (size_t i = 0; i < topology_.capacities.size(); ++i) {
    const Topology::Capacity& capacity = topology_.capacities[i];
    const bool cached =
        capacity.cache_bytes > 0 && held[i] <= static_cast<double>(capacity.cache_bytes);
    bandwidths.push_back(cached ? capacity.cached_bandwidth : capacity.bandwidth);
  }
  // A device has one second of its own time for each second, all cores have shared_cores of them.
  bandwidths.resize(bandwidths.size() + topology_.nodes.size(), 1);
  if (topology_.shared_cores > 0) bandwidths.push_back(topology_.shared_cores);
  return bandwidths;
}

// FlowNetwork wants every resource once per flow; a route or a memory may come up several times.
void AddDraw(int resource, double weight, std::vector<FlowNetwork::Draw>& draws) {
  for (FlowNetwork::Draw& draw : draws) {
    if (draw.resource != resource) continue;
    draw.weight += weight;
    return;
  }
  draws.push_back({resource, weight});
}

void Simulation::AddMemory(int worker, double weight, std::vector<FlowNetwork::Draw>& draws) const {
  for (const int capacity : MemoryOf(topology_, placement_[worker])) {
    AddDraw(CapacityResource(capacity), weight, draws);
  }
}

absl::StatusOr<int> Simulation::ChannelBetween(int from, int to) {
  const auto [found, is_new] =
      channel_by_pair_.try_emplace({from, to}, static_cast<int>(channels_.size()));
  if (!is_new) return found->second;
  const int index = found->second;
  Channel& channel = channels_.emplace_back();
  SYNCOPATE_ASSIGN_OR_RETURN(channel.route, routes_.Between(placement_[from], placement_[to]));
  std::vector<FlowNetwork::Draw> draws;
  for (const int index_of_link : channel.route) {
    const Topology::Link& link = topology_.links[index_of_link];
    channel.latency += link.latency;
    // A link whose capacity is not faster never limits: the capacity is full no later. Leaving such
    // links out makes the flow network smaller and changes no rate.
    bool limits = true;
    for (const int capacity : link.capacities) {
      AddDraw(CapacityResource(capacity), 1, draws);
      limits = limits && bandwidths_[CapacityResource(capacity)] > link.bandwidth;
    }
    if (limits) AddDraw(index_of_link, 1, draws);
  }
  // Memory at both ends is drawn on at the same time as the links, because the bytes pass through
  // all of them at one rate. If both workers are on one memory, it is drawn on twice.
  AddMemory(from, kSenderReads, draws);
  channel.receive_draws = draws;
  AddMemory(to, kReceiveWrites, channel.receive_draws);
  channel.receive_reduce_draws = std::move(draws);
  AddMemory(to, kReceiveReduceReadsAndWrites, channel.receive_reduce_draws);
  channel.sender_overhead = topology_.nodes[placement_[from]].message_overhead;
  channel.receiver_overhead = topology_.nodes[placement_[to]].message_overhead;
  return index;
}

// The program was validated for its form only, so that sends and receives pair up is checked here.
absl::Status Simulation::MatchMessages() {
  for (int worker = 0; worker < program_.workers; ++worker) {
    const std::vector<Step>& steps = program_.steps[worker];
    for (uint32_t i = 0; i < steps.size(); ++i) {
      const Step& step = steps[i];
      if (step.kind == StepKind::kSend) {
        SYNCOPATE_ASSIGN_OR_RETURN(const int channel, ChannelBetween(worker, step.peer));
        channels_[channel].sends.push_back({worker, i});
      } else if (step.kind == StepKind::kReceive || step.kind == StepKind::kReceiveReduce) {
        SYNCOPATE_ASSIGN_OR_RETURN(const int channel, ChannelBetween(step.peer, worker));
        channels_[channel].receives.push_back({worker, i});
      }
    }
  }
  for (size_t c = 0; c < channels_.size(); ++c) {
    const Channel& channel = channels_[c];
    const size_t count = channel.sends.size();
    if (count != channel.receives.size()) {
      const bool more_sends = count > channel.receives.size();
      const StepRef lone =
          more_sends ? channel.sends[channel.receives.size()] : channel.receives[count];
      return absl::FailedPreconditionError(absl::StrCat("worker ", lone.worker, ", step ",
                                                        lone.step, ": there is no matching ",
                                                        more_sends ? "receive" : "send"));
    }
    for (size_t k = 0; k < count; ++k) {
      Message message;
      message.send = channel.sends[k];
      message.receive = channel.receives[k];
      message.channel = static_cast<int>(c);
      const uint64_t elements =
          program_.size(program_.steps[message.send.worker][message.send.step]);
      const uint64_t awaited =
          program_.size(program_.steps[message.receive.worker][message.receive.step]);
      if (elements != awaited) {
        return absl::FailedPreconditionError(
            absl::StrCat("worker ", message.receive.worker, ", step ", message.receive.step, ": ",
                         awaited, " elements are awaited, ", elements, " are sent"));
      }
      message.bytes = static_cast<double>(elements) * bytes_per_element_;
      State(message.send).message = static_cast<int>(messages_.size());
      State(message.receive).message = static_cast<int>(messages_.size());
      messages_.push_back(message);
      channels_[c].bytes += message.bytes;
    }
  }
  return absl::OkStatus();
}

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
  return MatchMessages();
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
      if (messages_[index].awaited) MessageReady(index, State(messages_[index].send).cause);
    }
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
    StartLocal(ref, step);
  } else if (step.kind == StepKind::kSend) {
    // The latency passes before the bytes flow, and does not occupy the links.
    offers_.emplace(now_ + channels_[messages_[index].channel].latency, offers_made_++, index);
  } else {
    messages_[index].awaited = true;
    if (messages_[index].offered) MessageReady(index, State(ref).cause);
  }
}

void Simulation::StartLocal(StepRef ref, const Step& step) {
  const double weight = step.kind == StepKind::kCopy ? kCopyReadsAndWrites : kReduceReadsAndWrites;
  std::vector<FlowNetwork::Draw> draws;
  AddMemory(ref.worker, weight, draws);
  const double bytes = static_cast<double>(program_.size(step)) * bytes_per_element_;
  // Without a memory in the topology, copying and adding cost nothing.
  if (draws.empty() || bytes == 0) {
    StepDone(ref);
    return;
  }
  local_.push_back(ref);
  BeginFlow(bytes, std::move(draws), -static_cast<int>(local_.size()));
}

// The message is offered and awaited. The messages of a channel flow one after the other, in the
// order in which they became ready.
void Simulation::MessageReady(int index, StepRef cause) {
  messages_[index].cause = cause;
  Channel& channel = channels_[messages_[index].channel];
  channel.waiting.push_back(index);
  if (channel.flowing < 0) StartFlow(index);
}

// `index` is the first message that waits in its channel, and the channel is free.
void Simulation::StartFlow(int index) {
  Message& message = messages_[index];
  Channel& channel = channels_[message.channel];
  channel.waiting.pop_front();
  channel.flowing = index;
  const bool reduces =
      program_.steps[message.receive.worker][message.receive.step].kind == StepKind::kReceiveReduce;
  std::vector<FlowNetwork::Draw> draws;
  if (message.bytes > 0) draws = reduces ? channel.receive_reduce_draws : channel.receive_draws;
  // An empty message is a flow of one unit that draws on the devices' time only. An overhead of
  // `seconds` per message is a draw of seconds / amount for each unit of the flow.
  const double amount = message.bytes > 0 ? message.bytes : 1;
  const std::pair<int, double> overheads[] = {{message.send.worker, channel.sender_overhead},
                                              {message.receive.worker, channel.receiver_overhead}};
  for (const auto& [worker, seconds] : overheads) {
    if (seconds == 0) continue;
    AddDraw(DeviceResource(placement_[worker]), seconds / amount, draws);
    if (topology_.shared_cores > 0) AddDraw(SharedCores(), seconds / amount, draws);
  }
  if (draws.empty()) {
    instant_.push_back(index);
  } else {
    BeginFlow(amount, std::move(draws), index);
  }
}

void Simulation::BeginFlow(double amount, std::vector<FlowNetwork::Draw> draws, int tag) {
  for (const FlowNetwork::Draw& draw : draws) bytes_[draw.resource] += draw.weight * amount;
  network_.Start(now_, amount, draws, tag);
}

void Simulation::MessageDone(int index) {
  Message& message = messages_[index];
  StepDone(message.receive);
  StepDone(message.send);
  Channel& channel = channels_[message.channel];
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
  return message < 0 ? ref : messages_[message].receive;
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
      result.utilisation = std::min(1.0, result.bytes / (bandwidths_[resource] * cost.seconds));
    }
    return result;
  };
  // Flows do not draw on links that cannot limit them, so links are counted from the routes.
  const size_t links = topology_.links.size();
  std::vector<double> link_bytes(links, 0);
  for (const Channel& channel : channels_) {
    for (const int link : channel.route) link_bytes[link] += channel.bytes;
  }
  for (size_t i = 0; i < links; ++i) cost.links.push_back(load(i, link_bytes[i]));
  for (size_t i = 0; i < topology_.capacities.size(); ++i) {
    cost.capacities.push_back(load(links + i, bytes_[links + i]));
  }
  cost.critical_chain = CriticalChain(last);
  cost.messages = messages_.size();
  std::vector<double> sent(states_.size(), 0);
  for (const Message& message : messages_) sent[message.send.worker] += message.bytes;
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
