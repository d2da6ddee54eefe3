#include "cost/program_flows.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace syncopate::cost {
namespace {

// FlowNetwork wants every resource once per flow; a route or a memory may come up several times.
void AddDraw(int resource, double weight, std::vector<FlowNetwork::Draw>& draws) {
  for (FlowNetwork::Draw& draw : draws) {
    if (draw.resource != resource) continue;
    draw.weight += weight;
    return;
  }
  draws.push_back({resource, weight});
}

}  // namespace

ProgramFlows::ProgramFlows(const Program& program, const Topology& topology,
                           absl::Span<const int> placement, double bytes_per_element)
    : program_(program),
      topology_(topology),
      placement_(placement),
      bytes_per_element_(bytes_per_element),
      routes_(topology),
      bandwidths_(Bandwidths()) {}

std::vector<double> ProgramFlows::Bandwidths() const {
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

void ProgramFlows::AddMemory(int worker, double weight,
                             std::vector<FlowNetwork::Draw>& draws) const {
  for (const int capacity : MemoryOf(topology_, placement_[worker])) {
    AddDraw(CapacityResource(capacity), weight, draws);
  }
}

absl::StatusOr<int> ProgramFlows::ChannelBetween(int from, int to) {
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
absl::Status ProgramFlows::Match() {
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
  for (size_t i = 0; i < channels_.size(); ++i) {
    SYNCOPATE_RETURN_IF_ERROR(AddMessages(static_cast<int>(i)));
  }
  return absl::OkStatus();
}

absl::Status ProgramFlows::AddMessages(int index) {
  Channel& channel = channels_[index];
  const size_t count = channel.sends.size();
  if (count != channel.receives.size()) {
    const bool more_sends = count > channel.receives.size();
    const StepRef lone =
        more_sends ? channel.sends[channel.receives.size()] : channel.receives[count];
    return absl::FailedPreconditionError(absl::StrCat("worker ", lone.worker, ", step ", lone.step,
                                                      ": there is no matching ",
                                                      more_sends ? "receive" : "send"));
  }
  for (size_t k = 0; k < count; ++k) {
    Message message;
    message.send = channel.sends[k];
    message.receive = channel.receives[k];
    message.channel = index;
    const uint64_t elements = program_.size(StepAt(message.send));
    const uint64_t awaited = program_.size(StepAt(message.receive));
    if (elements != awaited) {
      return absl::FailedPreconditionError(
          absl::StrCat("worker ", message.receive.worker, ", step ", message.receive.step, ": ",
                       awaited, " elements are awaited, ", elements, " are sent"));
    }
    message.bytes = static_cast<double>(elements) * bytes_per_element_;
    messages_.push_back(message);
    channel.bytes += message.bytes;
  }
  return absl::OkStatus();
}

Flow ProgramFlows::FlowOf(const Message& message) const {
  const Channel& channel = channels_[message.channel];
  const bool reduces = StepAt(message.receive).kind == StepKind::kReceiveReduce;
  // An empty message is a flow of one unit that draws on the devices' time only. An overhead of
  // `seconds` per message is a draw of seconds / amount for each unit of the flow.
  Flow flow;
  flow.amount = message.bytes > 0 ? message.bytes : 1;
  if (message.bytes > 0) {
    flow.draws = reduces ? channel.receive_reduce_draws : channel.receive_draws;
  }
  const std::pair<int, double> overheads[] = {{message.send.worker, channel.sender_overhead},
                                              {message.receive.worker, channel.receiver_overhead}};
  for (const auto& [worker, seconds] : overheads) {
    if (seconds == 0) continue;
    AddDraw(DeviceResource(placement_[worker]), seconds / flow.amount, flow.draws);
    if (topology_.shared_cores > 0) AddDraw(SharedCores(), seconds / flow.amount, flow.draws);
  }
  return flow;
}

// Without a memory in the topology, copying and adding cost nothing.
Flow ProgramFlows::FlowOfLocal(StepRef ref) const {
  const Step& step = StepAt(ref);
  Flow flow;
  flow.amount = static_cast<double>(program_.size(step)) * bytes_per_element_;
  if (flow.amount == 0) return flow;
  AddMemory(ref.worker, step.kind == StepKind::kCopy ? kCopyReadsAndWrites : kReduceReadsAndWrites,
            flow.draws);
  return flow;
}

}  // namespace syncopate::cost
